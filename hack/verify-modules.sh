#!/usr/bin/env bash
# Checks for every Go module of the repository that the downloaded modules match go.sum, and that go.mod and go.sum are
# tidy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Most of the time is spent waiting for the proxy, so several modules are checked at once.
git ls-files --cached --others --exclude-standard -z -- 'go.mod' '**/go.mod' | xargs -0 -n 1 -P 4 bash -c '
	dir=$(dirname "$1")
	echo "  $dir"
	cd "$dir" && go mod verify >/dev/null && go mod tidy -diff' check
