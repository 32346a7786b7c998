#!/usr/bin/env bash
# The demo: a hub and three regional clusters as local processes, one operator for all of them, and one Prometheus that
# differs by region. It installs everything with the commands that a user would run. The lab keeps running;
# hack/demo-down.sh stops it.
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

# wait_for WHAT WANT COMMAND...: waits until the command prints WANT, and shows the progress. The demo fails after five
# minutes.
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

# free_port: prints a free TCP port of this machine.
free_port() {
	local port
	for port in $(shuf -i 20000-32000 -n 50); do
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
	done
}

step 'Starting a hub and three regional clusters with controllers, and without any operator'
bin/lab up --topology lab/topologies/demo.yaml --dir "$HANSE_DIR"

webhook_port=$(free_port) view_port=$(free_port) metrics_port=$(free_port) console_port=$(free_port)
step 'Installing the hub chart on the hub'
"$helm" upgrade --install hanse charts/hanse-hub --kubeconfig "$(config hub)" \
	--namespace hanse-system --create-namespace --values $examples/hub-values.yaml --set webhook.url="https://localhost:$webhook_port" \
	--set console.enabled=true >/dev/null

# The address of this machine at which the hub serves views of members.
view_ip=$({ hostname -I 2>/dev/null || true; } | tr ' ' '\n' | grep -m1 -E '^[0-9]+(\.[0-9]+){3}$' || echo 127.0.0.1)
webhook_has_ca() {
	[[ -n $(hub get validatingwebhookconfiguration hanse-hub -o 'jsonpath={.webhooks[0].clientConfig.caBundle}') ]] && echo yes
}

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
	--leader-elect --health-probe-bind-address 0 --metrics-bind-address "127.0.0.1:$metrics_port" --metrics-secure=false \
	--webhook-bind-address "127.0.0.1:$webhook_port" --webhook-dns-names localhost --view-bind-address "$view_ip:$view_port" \
	--console-bind-address "127.0.0.1:$console_port" --console-secure=false # browsers trust this machine without TLS

# The API server forwards requests for a Service to addresses of pods, and never to a loopback address. No kubelet runs
# here, so that a Pod object with this machine's address stands for the hub process.
if [[ $view_ip != 127.0.0.1 ]]; then
	hub apply -f - >/dev/null <<-EOF
		apiVersion: v1
		kind: Pod
		metadata: {name: hanse-hub-process, namespace: hanse-system}
		spec: {serviceAccountName: hanse-hub, containers: [{name: hub, image: a-process-of-the-lab}]}
	EOF
	hub patch pod hanse-hub-process -n hanse-system --subresource status \
		-p "{\"status\":{\"podIP\":\"$view_ip\",\"podIPs\":[{\"ip\":\"$view_ip\"}]}}" >/dev/null
	hub apply -f - >/dev/null 2>"$HANSE_DIR/endpoints.log" <<-EOF || { cat "$HANSE_DIR/endpoints.log" >&2 && exit 1; } # it warns of Endpoints
		apiVersion: v1
		kind: Endpoints
		metadata: {name: hanse-hub-view, namespace: hanse-system}
		subsets:
		- addresses: [{ip: "$view_ip", targetRef: {kind: Pod, namespace: hanse-system, name: hanse-hub-process}}]
		  ports: [{name: view, port: $view_port}]
	EOF
fi
wait_for 'CA of the webhook' yes webhook_has_ca

step 'Serving the kinds of prometheus-operator on the hub'
chart=$(bin/lab chart prometheus-operator --out "$HANSE_DIR")
bin/hansectl operators crds "$chart" | hub apply --server-side -f - >/dev/null
wait_for 'CRD on the hub' True hub get crd prometheuses.monitoring.coreos.com -o 'jsonpath={.status.conditions[?(@.type=="Established")].status}'

step 'Joining the members. They grant what the hub needs to install prometheus-operator, and the kind Prometheus'
bin/hansectl operators rbac "$chart" --namespace monitoring >"$HANSE_DIR/prometheus-operator.yaml"
for m in "${members[@]}"; do
	bin/hansectl join "$m" --member-kubeconfig "$(config "$m")" --kubeconfig "$(config hub)" \
		--grant-operator "$HANSE_DIR/prometheus-operator.yaml" --grant prometheuses.monitoring.coreos.com \
		--admission-policy=adopt --list-workloads --list-events >"$HANSE_DIR/join-$m.log"
done
cat "$HANSE_DIR/join-${members[0]}.log"
echo 'The other members grant the same.'
bin/hansectl clusters --kubeconfig "$(config hub)"

step 'One Prometheus on the hub, where it goes and how it differs. No cluster has its operator yet'
hub apply -f $examples/prometheus.yaml -f $examples/placement.yaml -f $examples/overrides.yaml

step 'The operator, once for all clusters: Hanse installs it ahead of its custom resources'
hub create configmap prometheus-operator --namespace hanse-system --from-file=chart.tgz="$chart" --dry-run=client -o yaml | hub apply --server-side -f -
hub apply -f $examples/operator.yaml
wait_for 'clusters with a ready operator' 3 hub get federatedoperator prometheus-operator -o 'jsonpath={.status.ready}'
bin/hansectl operators prometheus-operator --kubeconfig "$(config hub)"

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

step 'A change that the operator refuses stops in the first wave: "latest" is no version'
rolled_out() { hub get placement metrics -n monitoring -o 'jsonpath={.status.conditions[?(@.type=="RolledOut")].reason}'; }
versions() {
	for m in "${members[@]}"; do
		"$bin/kubectl" --kubeconfig "$(config "$m")" get prometheus web -n monitoring -o "jsonpath=$m={.spec.version} "
	done
}
hub apply -f $examples/rollout.yaml
wait_for 'RolledOut of the placement' RolloutComplete rolled_out
hub patch prometheus web -n monitoring --type merge -p '{"spec":{"version":"latest"}}'
wait_for 'RolledOut of the placement' RolloutFailed rolled_out
bin/hansectl rollout status prometheus web -n monitoring --kubeconfig "$(config hub)" || true
wait_for 'version on each cluster' 'cn-sha-1= ap-se-1= eu-fra-1=latest ' versions
echo 'The object is corrected, and its placement has no waves again:'
hub patch prometheus web -n monitoring --type merge -p '{"spec":{"version":null}}'
hub apply -f $examples/placement.yaml
wait_for 'version on each cluster' 'cn-sha-1= ap-se-1= eu-fra-1= ' versions

step 'A user who may look at the fleet in the console'
hub apply -f - <<-EOF
	apiVersion: v1
	kind: ServiceAccount
	metadata: {name: viewer, namespace: monitoring}
	---
	apiVersion: rbac.authorization.k8s.io/v1
	kind: ClusterRoleBinding
	metadata: {name: demo-viewer}
	roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: hanse-fleet-view}
	subjects: [{kind: ServiceAccount, name: viewer, namespace: monitoring}]
	---
	apiVersion: rbac.authorization.k8s.io/v1
	kind: ClusterRole
	metadata: {name: demo-prometheuses}
	rules: [{apiGroups: [monitoring.coreos.com], resources: [prometheuses], verbs: [get, list, watch]}, {apiGroups: [""], resources: [events], verbs: [list]}]
	---
	apiVersion: rbac.authorization.k8s.io/v1
	kind: RoleBinding
	metadata: {name: demo-prometheuses, namespace: monitoring}
	roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: demo-prometheuses}
	subjects: [{kind: ServiceAccount, name: viewer, namespace: monitoring}]
EOF

# If the machine has only a loopback address, the API server cannot reach the hub.
endpoint=''
if [[ $view_ip == 127.0.0.1 ]]; then
	endpoint=" HANSE_HUB_ENDPOINT=https://127.0.0.1:$view_port"
fi
cat <<EOF

Done after $SECONDS s. The lab goes on running; try next:
  export KUBECONFIG=$(config hub) PATH=$bin:$PWD/bin:${helm%/*}:\$PATH$endpoint
  kubectl create token viewer -n monitoring                               # sign in with it at http://127.0.0.1:$console_port
  hansectl tree metrics -n monitoring                                     # down to the pods on each cluster
  hansectl get pods -n monitoring --clusters                              # of all clusters, in one table
  hansectl events prometheus web -n monitoring
  hansectl explain prometheus web -n monitoring --cluster cn-sha-1 --fields
  hansectl operators -o wide
  sed 's/value: 5/value: 6/' $examples/overrides.yaml | hansectl plan -n monitoring -f - --live --diff
  sed 's/value: 5/value: 6/' $examples/overrides.yaml | kubectl apply -f -
  kubectl wait prometheus/web -n monitoring --for=jsonpath='{.status.availableReplicas}'=12
  hansectl prune --dry-run                                                # nothing: every copy has a binding
  curl -s http://127.0.0.1:$metrics_port/metrics | grep '^hanse_'
  bin/lab pause eu-fra-1 --dir .cache/demo                                # a cluster that hangs
  kubectl wait mcl/eu-fra-1 --for=condition=Ready=False --timeout=2m
  hansectl status prometheus web -n monitoring
  bin/lab resume eu-fra-1 --dir .cache/demo
  kubectl delete prometheus web -n monitoring                             # gone from every member
  make demo-down
EOF
