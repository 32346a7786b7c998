#!/usr/bin/env bash
# Lints and renders each chart with its default values and with every ci/*-values.yaml, and shows that its schema
# refuses every ci/*-refused.yaml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

helm=$(hack/tool.sh --path helm)
failed=0
render() { # CHART [HELM-ARG...]
	local chart=$1
	shift
	"$helm" lint --strict --quiet --namespace hanse-system "$chart" "$@" &&
		"$helm" template release "$chart" --namespace hanse-system "$@" >/dev/null
}
for chart in charts/*/; do
	chart=${chart%/}
	render "$chart" || failed=1
	for values in "$chart"/ci/*-values.yaml; do
		render "$chart" --values "$values" || { echo "$values does not render" >&2 && failed=1; }
	done
	for values in "$chart"/ci/*-refused.yaml; do
		if "$helm" template release "$chart" --namespace hanse-system --values "$values" >/dev/null 2>&1; then
			echo "$values is accepted, although the chart must refuse it" >&2
			failed=1
		fi
	done
done
exit $failed
