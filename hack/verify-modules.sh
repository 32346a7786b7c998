#!/usr/bin/env bash
# Checks for every Go module of the repository that the downloaded modules match go.sum, and that go.mod and go.sum are
# tidy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
while read -r mod; do
	dir=$(dirname "$mod")
	echo "  $dir"
	(cd "$dir" && go mod verify >/dev/null && go mod tidy -diff) || failed=1
done < <(git ls-files --cached --others --exclude-standard -- 'go.mod' '**/go.mod')
exit $failed
