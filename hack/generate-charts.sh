#!/usr/bin/env bash
# Writes README.md and values.schema.json of each chart from the comments in its values.yaml,
# and from the schemas of lists in schemas/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for chart in charts/*/; do
	(
		cd "$chart"
		../../hack/tool.sh helm-schema --values values.yaml --output values.schema.json --draft 7 --indent 2 --bundle --bundle-without-id \
			--use-helm-docs --no-additional-properties
	)
done
hack/tool.sh helm-docs --chart-search-root charts --template-files README.md.gotmpl --sort-values-order file --log-level warning
