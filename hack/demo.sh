#!/usr/bin/env bash
# The demo: a hub and three regional clusters as local processes, and one Prometheus that differs by region.
# Everything is installed as a user would do it. It leaves the lab running; hack/demo-down.sh ends it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export HANSE_DIR=$PWD/.cache/demo
examples=docs/examples/metrics
members=(cn-sha-1 ap-se-1 eu-fra-1)
bin=$(bin/lab build --print-bin)
helm=$(hack/tool.sh --path helm)
export HELM_CACHE_HOME=$HANSE_DIR/helm HELM_CONFIG_HOME=$HANSE_DIR/helm HELM_DATA_HOME=$HANSE_DIR/helm

step() { printf '\n\033[1m[%3ds] %s\033[0m\n' "$SECONDS" "$*"; }
config() { bin/lab kubeconfig "$1" --dir "$HANSE_DIR"; }
hub() { "$bin/kubectl" --kubeconfig "$(config hub)" "$@"; }

# wait_for WHAT WANT COMMAND...: until the command prints WANT, with progress; the demo fails after five minutes.
wait_for() {
	local what=$1 want=$2 got='' last='' begin=$SECONDS
	shift 2
	while got=$("$@" 2>/dev/null || true) && [[ $got != "$want" ]]; do
		if [[ $got != "$last" ]]; then
			printf '  %3ds  %s: %s\n' "$((SECONDS - begin))" "$what" "${got:-nothing yet}"
			last=$got
		fi
		if ((SECONDS - begin > 300)); then
			echo "gave up after 300 s: $what is \"$got\", not \"$want\"; logs: bin/lab logs hanse-hub --dir $HANSE_DIR" >&2
			exit 1
		fi
		sleep 0.5
	done
	printf '  %3ds  %s: %s\n' "$((SECONDS - begin))" "$what" "$got"
}

step 'Starting a hub and three regional clusters, each with controllers and a prometheus-operator'
bin/lab up --topology lab/topologies/demo.yaml --dir "$HANSE_DIR"

step 'Installing the hub chart on the hub, the member chart on each member'
"$helm" upgrade --install hanse charts/hanse-hub --kubeconfig "$(config hub)" \
	--namespace hanse-system --create-namespace --values $examples/hub-values.yaml >/dev/null
for m in "${members[@]}"; do
	"$helm" upgrade --install hanse charts/hanse-member --kubeconfig "$(config "$m")" \
		--namespace hanse-system --create-namespace --values $examples/member-values.yaml >/dev/null
done

step 'Starting the hub process as the ServiceAccount that the chart made'
hub_server=$(hub config view --raw -o jsonpath='{.clusters[0].cluster.server}')
hub_ca=$(hub config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}')
hub_token=$(hub create token hanse-hub --namespace hanse-system --duration 24h)
(
	umask 077
	cat >"$HANSE_DIR/hanse-hub.kubeconfig" <<-EOF
		apiVersion: v1
		kind: Config
		clusters: [{name: hub, cluster: {server: "$hub_server", certificate-authority-data: "$hub_ca"}}]
		users: [{name: hanse-hub, user: {token: "$hub_token"}}]
		contexts: [{name: hub, context: {cluster: hub, user: hanse-hub}}]
		current-context: hub
	EOF
)
bin/lab run hanse-hub --dir "$HANSE_DIR" -- "$PWD/bin/hanse-hub" --kubeconfig "$HANSE_DIR/hanse-hub.kubeconfig" \
	--leader-elect --health-probe-bind-address 0 --metrics-bind-address 0

step 'Joining the members'
for m in "${members[@]}"; do
	bin/hansectl join "$m" --member-kubeconfig "$(config "$m")" --kubeconfig "$(config hub)"
done
bin/hansectl clusters --kubeconfig "$(config hub)"

step 'The CRDs of prometheus-operator, on the hub once: Hanse carries them to the members'
bin/lab crds prometheus-operator >"$HANSE_DIR/crds.yaml"
hub apply --server-side -f "$HANSE_DIR/crds.yaml" >/dev/null
hub label --overwrite -f "$HANSE_DIR/crds.yaml" app.kubernetes.io/part-of=prometheus-operator >/dev/null
hub apply -f $examples/operator-crds.yaml

step 'One Prometheus on the hub, where it goes and how it differs'
wait_for 'CRD on the hub' True hub get crd prometheuses.monitoring.coreos.com -o 'jsonpath={.status.conditions[?(@.type=="Established")].status}'
hub apply -f $examples/prometheus.yaml -f $examples/placement.yaml -f $examples/overrides.yaml

step 'Waiting for the operators: 5 replicas in Shanghai, 3 in Singapore and Frankfurt, one status on the hub'
wait_for 'availableReplicas on the hub' 11 hub get prometheus web -n monitoring -o 'jsonpath={.status.availableReplicas}'
wait_for 'Available on the hub' True hub get prometheus web -n monitoring -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}'

step 'What runs where'
for m in "${members[@]}"; do
	printf '  %-10s %s replicas, Available=%s\n' "$m" \
		"$("$bin/kubectl" --kubeconfig "$(config "$m")" get prometheus web -n monitoring -o 'jsonpath={.status.availableReplicas}')" \
		"$("$bin/kubectl" --kubeconfig "$(config "$m")" get prometheus web -n monitoring -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}')"
done
echo
hub get prometheus -n monitoring
echo
bin/hansectl status prometheus web -n monitoring --kubeconfig "$(config hub)"

cat <<EOF

Done after $SECONDS s. The lab goes on running; try next:
  export KUBECONFIG=$(config hub) PATH=$bin:$PWD/bin:\$PATH
  kubectl patch overridepolicy metrics-by-region -n monitoring --type json -p '[{"op":"replace","path":"/spec/rules/0/patches/0/value","value":6}]'
  kubectl get prometheus web -n monitoring -o jsonpath='{.status.availableReplicas}'      # 12, a few seconds later
  bin/lab pause eu-fra-1 --dir .cache/demo; hansectl status prometheus web -n monitoring  # a cluster that hangs; resume ends it
  kubectl delete prometheus web -n monitoring                                             # gone from every member
  make demo-down
EOF
