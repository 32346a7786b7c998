#!/usr/bin/env bash
# Lints and renders each chart with its default values and with every ci/*-values.yaml, and checks that its schema
# refuses every ci/*-refused.yaml. The script also checks that the rendered output contains some texts.
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

# says CHART VALUES TEXT: fails unless the output that is rendered with the values contains the text. With ! before the
# text, it fails if the output contains the text.
says() {
	local rendered
	rendered=$("$helm" template release "charts/$1" --namespace hanse-system ${2:+--values "charts/$1/ci/$2"})
	if [[ $3 == !* && $rendered == *"${3#!}"* || $3 != !* && $rendered != *"$3"* ]]; then
		echo "charts/$1 with ${2:-its default values}: wrong about '$3'" >&2
		failed=1
	fi
}
# notes CHART VALUES TEXT: does the same as says for the notes that helm prints after the installation.
notes() {
	local told
	told=$("$helm" install release "charts/$1" --namespace hanse-system --dry-run=client ${2:+--values "charts/$1/ci/$2"} | sed -n '/^NOTES:/,$p')
	if [[ $3 == !* && $told == *"${3#!}"* || $3 != !* && $told != *"$3"* ]]; then
		echo "charts/$1 with ${2:-its default values}: wrong notes about '$3'" >&2
		failed=1
	fi
}
# refuses CHART VALUES TEXT: fails unless the error for the values has the text, which names the value at fault. No error
# may name a file of templates/ but refused.yaml, which has only the checks of values.
refuses() {
	local error
	if error=$("$helm" template release "charts/$1" --namespace "${4:-hanse-system}" ${2:+--values "charts/$1/ci/$2"} 2>&1) || [[ $error != *"$3"* ]]; then
		echo "charts/$1 with ${2:-its default values}: the error does not say '$3': ${error:0:500}" >&2
		failed=1
	elif [[ $error == *templates/* && $error != *refused.yaml* ]]; then
		echo "charts/$1 with ${2:-its default values}: the error names a template: $error" >&2
		failed=1
	fi
}
refuses hanse-hub unknown-value-refused.yaml "additional properties"
refuses hanse-hub wildcard-kind-refused.yaml /federatedKinds/0/
refuses hanse-hub system-namespace-refused.yaml /federatedKinds/0/namespaces/
refuses hanse-hub label-as-number-refused.yaml /podLabels/
refuses hanse-hub own-label-refused.yaml "podLabels has app.kubernetes.io/name"
refuses hanse-hub own-annotation-refused.yaml "podAnnotations has kubectl.kubernetes.io/default-container"
refuses hanse-hub oidc-without-url-refused.yaml "console.url is empty"
refuses hanse-hub oidc-without-client-refused.yaml "console.oidc.clientID is empty"
refuses hanse-hub dry-run-without-protection-refused.yaml "webhook.dryRunRendered needs protection.enabled"
refuses hanse-hub "" "hanse-hub belongs in the namespace hanse-system" default
refuses hanse-member wildcard-group-refused.yaml /grantedKinds/0/
refuses hanse-member operator-escalate-refused.yaml "operator "
refuses hanse-member tunnel-without-hub-refused.yaml "tunnel.hub is empty"
refuses hanse-member tunnel-key-refused.yaml /tunnel/hubKeys/0
says hanse-hub full-values.yaml "example.com/team: platform"
says hanse-hub full-values.yaml 'example.com/scrape: "true"'
says hanse-hub full-values.yaml "nodeAffinity:"
says hanse-hub full-values.yaml "topologyKey: example.com/rack"
says hanse-hub full-values.yaml "!topologyKey: kubernetes.io/hostname"
says hanse-hub "" "topologyKey: kubernetes.io/hostname"
says hanse-hub "" "!affinity:"
notes hanse-hub "" "--reuse-values --set-json 'federatedKinds="
notes hanse-hub "" "hansectl join NAME"
notes hanse-hub "" "hansectl problems --checks"
notes hanse-hub no-pods-values.yaml "replicas is 0"
notes hanse-hub full-values.yaml !federatedKinds=
says hanse-member "" !hanse-agent
says hanse-member tunnel-values.yaml "serviceAccountName: hanse-agent"
says hanse-member tunnel-values.yaml "!hanse-token-a"
says hanse-member tunnel-values.yaml 'token: "012"'
says hanse-member tunnel-values.yaml 'value: "http://proxy.example.com:3128"'
says hanse-member tunnel-values.yaml "--join-token-file=/etc/hanse/join/token"
notes hanse-member "" "hansectl join NAME"
notes hanse-member tunnel-values.yaml "deploy/hanse-agent"
notes hanse-member "" !WARNING
notes hanse-member full-values.yaml !WARNING
notes hanse-member risky-values.yaml "secrets: it reads every Secret"
notes hanse-member risky-values.yaml "apps/deployments: it runs pods in kube-system"
notes hanse-member risky-values.yaml "WARNING: consumer tokens"
notes hanse-member risky-values.yaml !configmaps
notes hanse-member operators-values.yaml "apps/daemonsets: it runs pods in kube-system"
notes hanse-member operators-values.yaml "!it reads every Secret"
notes hanse-member risky-values.yaml !batch/jobs
says hanse-member risky-values.yaml 'namespace: "shop"'
says hanse-member operators-values.yaml "name: hanse-operator-widgets"
says hanse-member operators-values.yaml 'namespace: "widgets"'
says hanse-member consumers-values.yaml "resourceNames: [hanse-consumer-isolate]"
says hanse-member "" !hanse-consumer
refuses hanse-member consumer-bind-refused.yaml "consumer all: rules.0 has the verb bind"
says hanse-member kube-system-values.yaml 'namespace: "kube-system"'
for namespace in 123 null 456; do
	says hanse-member odd-names-values.yaml "namespace: \"$namespace\""
done
for text in 'namespace: "123"' 'namespace: "null"' 'priorityClassName: "1000"' 'name: "456"' 'secretName: "789"' 'name: "012"' "[\"ops's admins\"]"; do
	says hanse-hub odd-names-values.yaml "$text"
done
says hanse-member "" !hanse-operator
says hanse-hub full-values.yaml "--federated-namespaces=secrets=shop,blog"
says hanse-hub full-values.yaml 'namespace: "blog"'
says hanse-hub full-values.yaml "--otlp-endpoint=https://collector.monitoring:4318"
says hanse-hub full-values.yaml "--otlp-sampling=0.1"
says hanse-hub full-values.yaml "port: 4318"
says hanse-hub full-values.yaml 'name: "collector-ca"'
says hanse-hub "" !otlp
says hanse-hub full-values.yaml "--inventory-namespace=fleet"
says hanse-hub full-values.yaml 'namespace: "fleet"'
says hanse-hub "" !inventory
says hanse-hub full-values.yaml --check-chart-versions
says hanse-hub "" !--check-chart-versions
says hanse-hub full-values.yaml "--console-oidc-issuer=https://login.example.com:8443/realms/a"
says hanse-hub full-values.yaml "--console-oidc-scopes=openid,groups"
says hanse-hub full-values.yaml "--console-oidc-client-secret-file=/etc/hanse/oidc-client/client-secret"
says hanse-hub full-values.yaml "--console-oidc-ca-file=/etc/hanse/oidc/ca.crt"
says hanse-hub full-values.yaml "port: 8443"
says hanse-hub full-values.yaml 'secretName: "hanse-oidc"'
says hanse-hub "" !oidc
says hanse-member "" "kind: ValidatingAdmissionPolicyBinding"
says hanse-member no-policy-values.yaml !ValidatingAdmissionPolicy
says hanse-hub "" "name: leader-election"
says hanse-hub "" "policyName: hanse-hub-rollouts"
says hanse-hub "" "policyName: hanse-hub-account"
says hanse-hub "" "policyName: hanse-hub-approvals"
says hanse-hub full-values.yaml "--webhook-dry-run-rendered"
says hanse-hub full-values.yaml "verbs: [get, list, watch, create]"
says hanse-hub full-values.yaml "request.?dryRun.orValue(false)"
says hanse-hub "" !dry-run-rendered
says hanse-hub "" !request.?dryRun
says hanse-hub "" "verbs: [rollout-pause, rollout-undo]"
says hanse-hub "" "verbs: [rollout-approve, rollout-pause, rollout-skip, rollout-promote, rollout-undo]"
says hanse-hub no-pods-values.yaml !hanse-hub-rollouts
says hanse-hub full-values.yaml ".check('rollout-undo').allowed()"
says hanse-hub "" 169.254.0.0/16
says hanse-hub "" !--proxy-from-environment
says hanse-hub full-values.yaml --proxy-from-environment
says hanse-hub full-values.yaml "kubernetes.io/metadata.name: monitoring"
says hanse-hub "" "resource: limits.memory"
says hanse-hub "" 'value: $(MEMORY_LIMIT_MIB)000000'
says hanse-hub "" 'value: "200"'
says hanse-hub full-values.yaml "serverName: hanse-hub-metrics.hanse-system.svc"
says hanse-hub "" !PrometheusRule
says hanse-hub "" !hanse-dashboard
says hanse-hub full-values.yaml "(1 - 0.999)"
says hanse-hub full-values.yaml 'runbook_url: "https://runbooks.example.com/hanse#hansehubdown"'
says hanse-hub odd-names-values.yaml 'value: "1000000"'
says hanse-hub full-values.yaml "dashboards: grafana"
says hanse-hub full-values.yaml "name: hanse-dashboard-fleet"
says hanse-hub "" !console-bind-address
says hanse-hub "" !hanse-hub-console
says hanse-hub full-values.yaml "kubernetes.io/metadata.name: ingress"
says hanse-hub console-values.yaml "--console-bind-address=:8445"
says hanse-hub console-values.yaml "containerPort: 8445"
says hanse-hub console-values.yaml "port: 443, targetPort: console"
says hanse-hub console-values.yaml "name: hanse-hub-webhook"
says hanse-hub console-values.yaml "resourceNames: [hanse-hub-webhook]"
says hanse-hub console-values.yaml "port: 8445, protocol: TCP"
says hanse-hub console-values.yaml "name: hanse-fleet-view"
says hanse-hub console-values.yaml !ValidatingWebhookConfiguration
says hanse-hub console-values.yaml !MutatingWebhookConfiguration
says hanse-hub "" "!kind: MutatingWebhookConfiguration"
says hanse-hub webhook-values.yaml "url: \"https://hub.example.com:9443/validate-policies\""
says hanse-hub webhook-values.yaml "url: \"https://hub.example.com:9443/record-authors\""
says hanse-hub webhook-values.yaml "kind: MutatingWebhookConfiguration"
says hanse-hub webhook-values.yaml $'resources: [mutatingwebhookconfigurations]\n    resourceNames: [hanse-hub]\n    verbs: [get, patch]\n'
says hanse-hub "" $'resources: [mutatingwebhookconfigurations]\n    resourceNames: [hanse-hub]\n    verbs: [get]\n'
notes hanse-hub "" "edit or admin in a namespace may now place"
notes hanse-hub no-pods-values.yaml "!edit or admin"
notes hanse-hub "" !dashboard
notes hanse-hub console-values.yaml "hansectl dashboard"
if grep -rniE 'insecure-?skip-?(tls-?)?verify' charts/*/templates charts/*/values.yaml charts/*/ci; then
	echo "a chart does not verify the other side" >&2
	failed=1
fi
exit $failed
