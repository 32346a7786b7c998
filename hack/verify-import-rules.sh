#!/usr/bin/env bash
# Shows that the import rules of .golangci.yaml complain when they are broken.
#
# A rule whose glob matches nothing is silent, and a green linter then says nothing about the architecture. So each
# breach below is written into a copy of the tree, and golangci-lint must name exactly these files.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

hanse=github.com/hanse-dev/hanse
breaches=(
	"api/v1alpha1     k8s.io/client-go/rest"
	"source           k8s.io/client-go/rest"
	"credential       k8s.io/client-go/rest"
	"expression       k8s.io/client-go/rest"
	"guard            k8s.io/client-go/rest"
	"guard            $hanse/placement"
	"placement        k8s.io/client-go/rest"
	"placement        log/slog"
	"placement        $hanse/overrides"
	"replicas         $hanse/placement"
	"tenancy          k8s.io/client-go/rest"
	"overrides        sigs.k8s.io/controller-runtime/pkg/client"
	"hub/rollup       k8s.io/client-go/rest"
	"answer           $hanse/member"
	"kindwatch        $hanse/member"
	"member/health    net/http"
	"member/fields    k8s.io/client-go/rest"
	"member/openapi   k8s.io/client-go/rest"
	"member/served    $hanse/member/apply"
	"member/values    k8s.io/client-go/rest"
	"hub/admission    $hanse/hub/dispatch"
	"hub/certificate  $hanse/hub/admission"
	"hub/protect      $hanse/hub/schedule"
	"member/apply     $hanse/placement"
	"member/observe   $hanse/member/apply"
	"hub/schedule     $hanse/hub/dispatch"
	"hub/report       $hanse/member/observe"
	"hub/dispatch     $hanse/hub/report"
	"hub/epochs       $hanse/hub/dispatch"
	"hub/shard        $hanse/hub/membership"
	"hub/memberview   $hanse/member/children"
	"hub/memberview   $hanse/hub/dispatch"
	"member/children  $hanse/member/apply"
	"member/copies    $hanse/member/apply"
	"member/granted   $hanse/member/apply"
	"hub/memberview   $hanse/member/copies"
	"hub/memberview   $hanse/member/granted"
	"member/tokens    $hanse/member/apply"
	"hub/membership   $hanse/member/tokens"
)

cd "$root"
git ls-files --cached --others --exclude-standard -- '*.go' go.mod go.sum .golangci.yaml ':!lab' |
	while read -r file; do [[ ! -f $file ]] || cp --parents "$file" "$copy"; done

expected=()
for i in "${!breaches[@]}"; do
	read -r folder import <<<"${breaches[i]}"
	file=$folder/zz_breach_$i.go
	mkdir -p "$copy/$folder"
	name=$(awk '/^package /{sub(/_test$/, "", $2); print $2; exit}' "$copy/$folder"/*.go 2>/dev/null || true)
	printf 'package %s\n\nimport _ "%s"\n' "${name:-${folder##*/}}" "$import" >"$copy/$file"
	expected+=("$file")
done

linter=$("$root/hack/tool.sh" --path golangci-lint)
folders=$(printf './%s/...\n' api answer credential kindwatch guard source expression placement replicas tenancy overrides hub member)
# shellcheck disable=SC2086
report=$(cd "$copy" && "$linter" run --enable-only depguard --output.text.print-issued-lines=false $folders 2>&1) || true

missed=0
for i in "${!breaches[@]}"; do
	if ! grep -q "^${expected[i]}:.*(depguard)$" <<<"$report"; then
		echo "no import rule refuses: ${breaches[i]}" >&2
		missed=1
	fi
done
if ((missed)); then
	printf '%s\n' "$report" | tail -n 20 >&2
	exit 1
fi
echo "import rules refuse ${#breaches[@]} of ${#breaches[@]} breaches"
