#!/usr/bin/env bash
# Writes the CRDs of api/ to charts/hanse-hub/files/crds, ready to be applied as they are.
#
# Helm never upgrades the CRDs in a chart's crds/ folder, so templates/crds.yaml renders these files instead. Each CRD
# has an annotation that tells helm to keep it. Without the annotation, `helm uninstall` would delete the CRDs, and with
# them every Placement and binding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=charts/hanse-hub/files/crds
mkdir -p "$out"
rm -f "$out"/*.yaml
hack/tool.sh controller-gen crd paths=./api/... output:crd:dir="$out"
sed -i.bak 's|^    controller-gen.kubebuilder.io/version:.*|&\n    helm.sh/resource-policy: keep|' "$out"/*.yaml
rm -f "$out"/*.bak
for crd in "$out"/*.yaml; do
	grep -q '^    helm.sh/resource-policy: keep$' "$crd" || {
		echo "$crd has no place for the annotation helm.sh/resource-policy" >&2
		exit 1
	}
done

if grep -n '[“”]' "$out"/*.yaml; then
	echo 'gofmt turns two single quotes in a comment into one typographic quote: write \"\" in the rule instead' >&2
	exit 1
fi
