#!/usr/bin/env bash
# Compares the CRDs of the hub's chart with those of the commit in hack/upgrade-from, and fails if stored objects or
# users of that state would be hurt. hack/upgrade-accepted has the changes that are accepted, with their reasons.
#
# A shallow clone may lack the commit. Then there is nothing to compare with, which fails if HANSE_HISTORY is require.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

crds=charts/hanse-hub/files/crds
read -r from _ <hack/upgrade-from
if ! git cat-file -e "$from^{commit}" 2>/dev/null; then
	echo "this clone lacks commit $from of hack/upgrade-from, so the CRDs are not compared: run git fetch --unshallow" >&2
	[[ ${HANSE_HISTORY:-} != require ]]
	exit
fi
old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
git archive "$from" "$crds" | tar -x -C "$old"
go run -C hack/crdcheck . "$old/$crds" "$PWD/$crds" "$PWD/hack/upgrade-accepted"
echo "the CRDs are compatible with those of ${from:0:12}, but for $(grep -c '^[^#]' hack/upgrade-accepted) accepted changes"
