{{/* Credentials of members and the hub's own objects are in one namespace, whose name is a constant in the code. */}}
{{- define "hanse-hub.namespace" -}}
{{- if ne .Release.Namespace "hanse-system" -}}
{{- fail (printf "hanse-hub belongs in the namespace hanse-system, not in %q: pass --namespace hanse-system --create-namespace" .Release.Namespace) -}}
{{- end -}}
{{- .Release.Namespace -}}
{{- end -}}

{{/* Not empty if a webhook reviews policies: in pods of this chart, or in a hub outside the cluster. */}}
{{- define "hanse-hub.webhook" -}}
{{- if and .Values.webhook.enabled (or .Values.webhook.url (gt (int .Values.replicas) 0)) -}}true{{- end -}}
{{- end -}}

{{/* Not empty if the hub needs a certificate: for the webhook, for metrics, or for the console. */}}
{{- define "hanse-hub.certificate" -}}
{{- if or (include "hanse-hub.webhook" .) .Values.metrics.enabled .Values.console.enabled -}}true{{- end -}}
{{- end -}}

{{- define "hanse-hub.selectorLabels" -}}
app.kubernetes.io/name: hanse-hub
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "hanse-hub.labels" -}}
{{ include "hanse-hub.selectorLabels" . }}
app.kubernetes.io/part-of: hanse
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "hanse-hub.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "hanse-hub.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Annotations of objects for the pre-delete hook: Helm creates them before the hook's Job, and deletes them with the Job. */}}
{{- define "hanse-hub.hookAnnotations" -}}
helm.sh/hook: pre-delete
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* Annotations of objects for `helm test`. After a failure the pod stays until the next test, so that its log can be read. */}}
{{- define "hanse-hub.testAnnotations" -}}
helm.sh/hook: test
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}

{{/* The image with hansectl. */}}
{{- define "hanse-hub.hansectl" -}}
{{ .Values.uninstallHook.image.repository }}:{{ .Values.uninstallHook.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* Not empty if the webhook sends rendered objects to the API server as dry runs. */}}
{{- define "hanse-hub.dryRun" -}}
{{- if and .Values.webhook.dryRunRendered (include "hanse-hub.webhook" .) -}}
{{- if not .Values.protection.enabled -}}
{{- fail "webhook.dryRunRendered needs protection.enabled: only the policy hanse-hub-account limits the right of the hub to create objects to dry runs" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{/* The RBAC rules for the entry of federatedKinds in the field kind. dryRun is the result of hanse-hub.dryRun. */}}
{{- define "hanse-hub.federatedKind" -}}
- apiGroups: {{ toJson .kind.apiGroups }}
  resources: {{ toJson .kind.resources }}
  verbs: [get, list, watch{{ if .dryRun }}, create{{ end }}]
{{- if .kind.status }}
- apiGroups: {{ toJson .kind.apiGroups }}
  resources:
    {{- range .kind.resources }}
    - {{ . }}/status
    {{- end }}
  verbs: [patch]
{{- end }}
{{- end -}}

{{/* The port of a URL. */}}
{{- define "hanse-hub.portOf" -}}
{{- $url := urlParse . -}}
{{- regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- end }}
