#!/usr/bin/env bash
# Compares the CRDs in the hub's chart with the CRDs of the commit in hack/upgrade-from. It fails if a change would
# break stored objects or users of the older CRDs. hack/upgrade-accepted lists the accepted changes with their reasons.
#
# A shallow clone may not have that commit. In that case there is nothing to compare, which is an error if HANSE_HISTORY
# is "require".
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
