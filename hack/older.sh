#!/usr/bin/env bash
# Builds the charts, the images and hansectl of the commit in hack/upgrade-from, from which tests upgrade the hub. With
# --path it only prints the folder with the results. The images have the tag "older". A clone without history does not
# have that commit. In that case the script builds the current commit, or fails if HANSE_HISTORY is "require".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

commit=$(sed 's/[[:space:]]*#.*//' hack/upgrade-from)
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
	echo "commit $commit of hack/upgrade-from is not in this clone: tests upgrade the hub from the current commit" >&2
	[[ ${HANSE_HISTORY:-} != require ]]
	commit=$(git rev-parse HEAD)
fi
older=$PWD/.cache/older/$commit
if [[ ${1:-} == --path ]]; then
	echo "$older"
	exit
fi
if [[ -e $older/complete ]]; then
	exit
fi
echo "building the charts, the images and hansectl of commit ${commit:0:12}, once" >&2
source=$older/source
git worktree remove --force "$source" 2>/dev/null || true
rm -rf "$older"
mkdir -p "$older/bin" "$older/images"
git worktree add --force --detach --quiet "$source" "$commit"
trap 'git worktree remove --force "$source"' EXIT

platform=linux/$(go env GOARCH)
export CGO_ENABLED=0 SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
mkdir -p "$older/binaries/$platform"
go build -C "$source" -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${commit:0:7}" -o "$older/binaries/$platform/" ./cmd/...
go run -C hack/image ./cmd/image build -repository ghcr.io/hanse-dev -version older -revision "$commit" \
	-platforms "$platform" -binaries "$older/binaries" -output "$older/images" hanse-hub hansectl
mv "$older/binaries/$platform/hansectl" "$older/bin/"
cp -r "$source/charts" "$older/charts"
rm -rf "$older/binaries"
touch "$older/complete"
