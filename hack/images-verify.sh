#!/usr/bin/env bash
# Checks that two builds give the same images: make images-verify. It builds the images from two clones of the current
# commit, in different folders and with different settings of the shell. All files of the two builds must be equal. The
# second build reuses compiled packages from Go's cache, because -trimpath makes them independent of the folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${IMAGE_REPOSITORY:?}" "${IMAGE_PLATFORMS:?}" "${VERSION:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build CLONE: builds the images of the current commit in a new clone.
build() {
	git clone --quiet --no-checkout "$(git rev-parse --git-common-dir)" "$1"
	git -C "$1" checkout --quiet --detach "$(git rev-parse HEAD)"
	make -C "$1" images IMAGE_REPOSITORY="$IMAGE_REPOSITORY" IMAGE_PLATFORMS="$IMAGE_PLATFORMS" VERSION="$VERSION"
}

(umask 022 && TZ=UTC build "$work/first")
(umask 077 && TZ=Asia/Tokyo build "$work/another/folder/second")

if ! diff <(cd "$work/first/bin/images" && sha256sum -- *) <(cd "$work/another/folder/second/bin/images" && sha256sum -- *); then
	echo "images-verify: two builds of commit $(git rev-parse HEAD) differ" >&2
	exit 1
fi
echo "two builds of commit $(git rev-parse HEAD) are equal"
