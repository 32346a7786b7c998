#!/usr/bin/env bash
# Prints the packages whose tests start an API server through envtest, one per line. The end-to-end tests are not
# included, because they run on the lab.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go list -test -f '{{$path := .ImportPath}}{{range .Deps}}{{if eq . "sigs.k8s.io/controller-runtime/pkg/envtest"}}{{$path}}{{"\n"}}{{end}}{{end}}' ./... |
	sed -n 's/\.test$//p' | grep -v '/test/e2e' | sort -u
