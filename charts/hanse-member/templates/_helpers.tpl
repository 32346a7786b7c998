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
