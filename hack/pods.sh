#!/usr/bin/env bash
# Runs the tests of the charts on real nodes, after make ready-pods.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

HANSE_HELM=$(hack/tool.sh --path helm)
HANSE_OLDER=$(hack/older.sh --path)
export HANSE_HELM HANSE_OLDER HANSE_LAB=$PWD/bin/lab HANSE_BIN=$PWD/bin HANSE_IMAGES=$PWD/bin/images
exec hack/tool.sh gotestsum --format testname --junitfile bin/tests/pods.xml --packages ./test/pods -- \
	-vet=off -count=1 -timeout 25m
