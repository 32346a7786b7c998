#!/usr/bin/env bash
# Checks that golangci-lint reports a violation of each import rule in .golangci.yaml, and of the rule for the width of
# comments.
#
# The check is necessary because a rule whose glob matches no file reports nothing, although the architecture may be
# broken. The script writes one violation of each rule into a copy of the tree, and golangci-lint must report each of
# these files.
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
	"decide           k8s.io/client-go/rest"
	"decide           k8s.io/utils/clock"
	"decide           log/slog"
	"decide           github.com/go-logr/logr"
	"decide           sigs.k8s.io/controller-runtime/pkg/client"
	"decide           $hanse/hub/rollup"
	"plan             k8s.io/client-go/rest"
	"plan             $hanse/hub/memberview"
	"crdupgrade       k8s.io/client-go/rest"
	"crdupgrade       sigs.k8s.io/crdify/pkg/runner"
	"crdupgrade       $hanse/versions"
	"chart            helm.sh/helm/v4/pkg/action"
	"chart            k8s.io/client-go/rest"
	"chart            $hanse/placement"
	"chart/child      helm.sh/helm/v4/pkg/engine"
	"chart/child      k8s.io/client-go/rest"
	"chart/child      $hanse/bundle"
	"hub/bundles      $hanse/chart"
	"hub/bundles      oras.land/oras-go/v2/registry/remote"
	"hub/charts       k8s.io/client-go/rest"
	"hub/charts       $hanse/chart/child"
	"hub/schedule     $hanse/chart/child"
	"hub/tracing      $hanse/hub/scopes"
	"hub/tracing      k8s.io/client-go/rest"
	"cmd/hansectl/command $hanse/chart/child"
	"cmd/hansectl/command helm.sh/helm/v4/pkg/engine"
	"cmd/hansectl/command $hanse/hub/schedule"
	"bundle           k8s.io/client-go/rest"
	"bundle           $hanse/tenancy"
	"guard            k8s.io/client-go/rest"
	"guard            $hanse/placement"
	"operator         k8s.io/client-go/rest"
	"operator         $hanse/placement"
	"placement        k8s.io/client-go/rest"
	"placement        log/slog"
	"placement        $hanse/overrides"
	"replicas         $hanse/placement"
	"replicas         sigs.k8s.io/kubefed/pkg/client/generic"
	"rollout          k8s.io/client-go/rest"
	"rollout          $hanse/placement"
	"tenancy          k8s.io/client-go/rest"
	"test/chaos       $hanse/overrides"
	"versions         k8s.io/client-go/rest"
	"overrides        sigs.k8s.io/controller-runtime/pkg/client"
	"hub/rollup       k8s.io/client-go/rest"
	"answer           $hanse/member"
	"kindwatch        $hanse/member"
	"member/health    net/http"
	"member/openapi   k8s.io/client-go/rest"
	"member/served    $hanse/member/apply"
	"hub/admission    $hanse/hub/dispatch"
	"hub/certificate  $hanse/hub/admission"
	"hub/console      $hanse/hub/dispatch"
	"hub/console      $hanse/hub/rights"
	"hub/console      $hanse/chart"
	"view             k8s.io/client-go/rest"
	"view             net/http"
	"view             $hanse/hub/schedule"
	"hub/protect      $hanse/hub/schedule"
	"member/apply     $hanse/placement"
	"member/apply     $hanse/operator"
	"member/observe   $hanse/member/apply"
	"hub/schedule     $hanse/hub/dispatch"
	"hub/report       $hanse/member/observe"
	"hub/catalog      $hanse/hub/identity"
	"hub/dispatch     $hanse/hub/report"
	"hub/changes      $hanse/hub/catalog"
	"hub/pace         $hanse/hub/scopes"
	"hub/slots        $hanse/hub/scopes"
	"hub/bundles      $hanse/hub/templates"
	"hub/rights       $hanse/hub/scopes"
	"hub/epochs       $hanse/hub/dispatch"
	"hub/revisions    $hanse/hub/dispatch"
	"hub/eventlog     $hanse/hub/report"
	"hub/notify       $hanse/hub/eventlog"
	"hub/identity     $hanse/hub/membership"
	"hub/shard        $hanse/hub/membership"
	"hub/memberview   $hanse/member/children"
	"hub/memberview   $hanse/hub/dispatch"
	"member/children  $hanse/member/apply"
	"member/copies    $hanse/member/apply"
	"member/granted   $hanse/member/apply"
	"hub/memberview   $hanse/member/copies"
	"hub/memberview   $hanse/member/granted"
	"hub/memberview   $hanse/member/read"
	"member/read      $hanse/member/apply"
	"member/tokens    $hanse/member/apply"
	"hub/membership   $hanse/member/tokens"
)

cd "$root"
git ls-files --cached --others --exclude-standard -- '*.go' go.mod go.sum .golangci.yaml ':!lab' ':!hack/image' |
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

wide=$(printf 'word %.0s' {1..30})
printf 'package source\n\n// wide is %s\nconst wide = "%s"\n\nvar _ = wide\n' "$wide" "$wide" >"$copy/source/zz_wide.go"

# Test files are not linted, because they may import more packages, and a violation could then create an import cycle.
linter=$("$root/hack/tool.sh" --path golangci-lint)
folders=$(printf './%s/...\n' api answer chart credential crdupgrade decide plan kindwatch bundle guard operator source expression placement replicas rollout tenancy versions overrides hub member view cmd/hansectl test/chaos)
# shellcheck disable=SC2086
report=$(cd "$copy" && "$linter" run --tests=false --enable-only depguard,lll --output.text.print-issued-lines=false $folders 2>&1) || true

missed=0
for i in "${!breaches[@]}"; do
	if ! grep -q "^${expected[i]}:.*(depguard)$" <<<"$report"; then
		echo "no import rule refuses: ${breaches[i]}" >&2
		missed=1
	fi
done
if ! grep -q '^source/zz_wide.go:3:.*(lll)$' <<<"$report"; then
	echo "no rule refuses a comment of 160 columns" >&2
	missed=1
fi
if grep '^source/zz_wide.go:4:.*(lll)$' <<<"$report" >&2; then
	echo "the width of code is limited, too" >&2
	missed=1
fi
if ((missed)); then
	printf '%s\n' "$report" | tail -n 20 >&2
	exit 1
fi
echo "import rules refuse ${#breaches[@]} of ${#breaches[@]} breaches, and comments are at most 120 columns wide"
