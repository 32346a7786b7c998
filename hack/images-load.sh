#!/usr/bin/env bash
# Imports image archives into the container runtime of this machine: make images-load.
#	hack/images-load.sh ARCHIVE...
# If KIND_CLUSTER is set, the archives are imported into the kind cluster of this name. If it is not set, they are
# imported into the containerd of a Kubernetes node, or into docker. The script recognises the containerd of a node by
# its namespace k8s.io, which the containerd of docker does not have.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ! -f ${1:-} ]]; then
	echo "images-load: there is no archive ${1:-}: run make images first" >&2
	exit 1
fi

if [[ -n ${KIND_CLUSTER:-} ]]; then
	for archive; do
		kind load image-archive "$archive" --name "$KIND_CLUSTER"
		echo "loaded $archive into the kind cluster $KIND_CLUSTER"
	done
elif ctr namespaces ls --quiet 2>/dev/null | grep -qx k8s.io; then
	for archive; do
		ctr --namespace k8s.io images import "$archive"
		echo "imported $archive into containerd, namespace k8s.io"
	done
elif platform=$(docker version --format '{{.Server.Os}}/{{.Server.Arch}}' 2>/dev/null); then
	for archive; do
		go run -C hack/image ./cmd/image docker "$(realpath "$archive")" "$platform" | docker load
		echo "loaded the image for $platform of $archive into docker"
	done
else
	echo "images-load: nothing on this machine takes images: KIND_CLUSTER is not set, containerd has no namespace" \
		"k8s.io, and docker does not answer" >&2
	exit 1
fi
