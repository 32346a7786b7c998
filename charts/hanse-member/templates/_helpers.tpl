{{/* The hub's ServiceAccount is in one namespace, whose name is a constant in the code. */}}
{{- define "hanse-member.namespace" -}}
{{- if ne .Release.Namespace "hanse-system" -}}
{{- fail (printf "hanse-member belongs in the namespace hanse-system, not in %q: pass --namespace hanse-system --create-namespace" .Release.Namespace) -}}
{{- end -}}
{{- .Release.Namespace -}}
{{- end -}}

{{- define "hanse-member.labels" -}}
app.kubernetes.io/name: hanse-member
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/part-of: hanse
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of the agent's pods. They select these pods, so that they have no version. */}}
{{- define "hanse-member.agentLabels" -}}
app.kubernetes.io/name: hanse-member
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: agent
{{- end -}}

{{/* The kinds of a rule as a JSON list, as in files/risks.yaml, such as ["secrets", "apps/deployments"]. */}}
{{- define "hanse-member.kinds" -}}
{{- $kinds := list -}}
{{- $resources := .resources -}}
{{- range $group := .apiGroups -}}
{{- range $resources -}}
{{- $kinds = append $kinds (printf "%s/%s" $group . | trimPrefix "/") -}}
{{- end -}}
{{- end -}}
{{- toJson $kinds -}}
{{- end -}}

{{/*
Why a rule may not be in kube-system, or nothing. The hub may have there what an operator needs to elect its leader: rules about Leases and events, to read the
ConfigMap that aggregated API servers need, and the verb use on Roles, which names the Roles that the hub may write and bind to.
*/}}
{{- define "hanse-member.beyondLeaderElection" -}}
{{- $rule := . -}}
{{- $names := .resourceNames | default list -}}
{{- $why := "" -}}
{{- range $kind := include "hanse-member.kinds" $rule | fromJsonArray -}}
{{- $free := list -}}
{{- $named := list -}}
{{- if eq $kind "coordination.k8s.io/leases" -}}
{{- $free = list "create" "get" "list" "watch" -}}
{{- $named = $rule.verbs -}}
{{- else if has $kind (list "events" "events.k8s.io/events") -}}
{{- $free = list "create" "patch" -}}
{{- $named = $free -}}
{{- else if eq $kind "rbac.authorization.k8s.io/roles" -}}
{{- $named = list "use" -}}
{{- else if and (eq $kind "configmaps") (eq (toJson $names) `["extension-apiserver-authentication"]`) -}}
{{- $named = list "get" "list" "watch" -}}
{{- end -}}
{{- range $rule.verbs -}}
{{- if and (not $why) (not (has . (ternary $named $free (gt (len $names) 0)))) -}}
{{- $do := ternary "set resourceNames" "remove the rule" (and (has . $named) (not $names)) -}}
{{- $why = printf "has the verb %s on %s, by which the hub gets more in kube-system than an operator needs to elect its leader: %s" . $kind $do -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $names -}}
{{- if and (not $why) (regexMatch "^(system:|kube-|kubeadm:|apiserver-|cloud-controller-manager$|cloud-provider-extraction-migration$)" .) -}}
{{- $why = printf "names %s, which belongs to Kubernetes: remove it" . -}}
{{- end -}}
{{- end -}}
{{- $why -}}
{{- end -}}
