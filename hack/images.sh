#!/usr/bin/env bash
# Writes the container images of the commands in cmd/ to bin/images, without a container runtime: make images.
#
# NAME.tar is an OCI archive for all platforms, and NAME.spdx.json lists its contents. Two builds of one commit with one
# version of Go give equal files, because no path, time or setting of the machine is written to them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

: "${IMAGE_REPOSITORY:?}" "${IMAGE_PLATFORMS:?}" "${VERSION:?}" "${LDFLAGS:?}"
revision=$(git rev-parse HEAD)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -C hack/image -o "$work/image" ./cmd/image

# All variables that affect the compiled code are set here, so that the environment does not affect it. Go records no
# version control data, because these depend on tags that a clone may lack.
export GOFLAGS= CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GOFIPS140=off
names=()
for folder in cmd/*/; do
	names+=("$(basename "$folder")")
done
for platform in ${IMAGE_PLATFORMS//,/ }; do
	mkdir -p "$work/$platform"
	GOOS=${platform%/*} GOARCH=${platform#*/} \
		go build -trimpath -buildvcs=false -ldflags "$LDFLAGS" -o "$work/$platform/" ./cmd/...
done

mkdir -p bin/images
"$work/image" build -repository "$IMAGE_REPOSITORY" -version "$VERSION" -revision "$revision" \
	-platforms "$IMAGE_PLATFORMS" -binaries "$work" -output bin/images "${names[@]}"
