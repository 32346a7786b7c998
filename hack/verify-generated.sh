#!/usr/bin/env bash
# Fails if a generated file differs from the committed file, or is not committed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

generated=(
	'api/*zz_generated*'
	'charts/hanse-hub/files/crds'
	'charts/hanse-hub/files/dashboards'
	'charts/*/README.md'
	'charts/*/values.schema.json'
	'overrides/testdata'
	'docs/metrics.md'
)
changed=$(git status --porcelain --untracked-files=all -- "${generated[@]}")
if [[ -n $changed ]]; then
	git --no-pager diff HEAD --stat -- "${generated[@]}" >&2
	echo "$changed" >&2
	echo "generated files are out of date: run 'make generate' and commit the result" >&2
	exit 1
fi
