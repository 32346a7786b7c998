#!/usr/bin/env bash
# Runs a pinned tool: hack/tool.sh NAME [ARG...]. With --path NAME it only prints the path of the binary.
#
# Each tool has its own go.mod file below hack/tools, so that its dependencies are not dependencies of the hub. A tool
# is built once into .cache/tools/<hash of its go.mod and the Go version>, and reused from there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
print=false
if [[ ${1:-} == --path ]]; then
	print=true
	shift
fi
name=${1:?usage: hack/tool.sh [--path] NAME [ARG...]}
shift

module=$root/hack/tools
tags=
case $name in
actionlint) package=github.com/rhysd/actionlint/cmd/actionlint module+=/actionlint ;;
controller-gen) package=sigs.k8s.io/controller-tools/cmd/controller-gen ;;
golangci-lint) package=github.com/golangci/golangci-lint/v2/cmd/golangci-lint module+=/golangci-lint ;;
gotestsum) package=gotest.tools/gotestsum ;;
govulncheck) package=golang.org/x/vuln/cmd/govulncheck module+=/govulncheck ;;
helm) package=helm.sh/helm/v4/cmd/helm module+=/helm ;;
helm-docs) package=github.com/norwoodj/helm-docs/cmd/helm-docs ;;
helm-schema) package=github.com/losisin/helm-values-schema-json/v2 ;;
hugo) package=github.com/gohugoio/hugo module+=/hugo ;;
# promtool has the version of the lab's Prometheus, which loads the same rules. It is built without the clients of cloud
# providers, which the tests do not need.
promtool) package=github.com/prometheus/prometheus/cmd/promtool module=$root/lab/components/prometheus tags=remove_all_sd ;;
*)
	echo "hack/tool.sh: no tool is called $name" >&2
	exit 2
	;;
esac

key=$(cat "$module/go.mod" <(go env GOVERSION) | sha256sum | cut -c1-12)
binary=$root/.cache/tools/$key/$name
if [[ ! -x $binary ]]; then
	mkdir -p "${binary%/*}"
	echo "building $name from source, once" >&2
	# The binary is built under a temporary name and then renamed, so that a concurrent caller never runs an incomplete
	# file.
	CGO_ENABLED=0 go build -C "$module" -trimpath -tags="$tags" -ldflags='-s -w' -o "$binary.$$" "$package"
	mv "$binary.$$" "$binary"
fi

if $print; then
	echo "$binary"
	exit
fi
exec "$binary" "$@"
