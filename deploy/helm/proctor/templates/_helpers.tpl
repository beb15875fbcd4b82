{{- define "proctor.name" -}}
{{ printf "%s-proctor" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}

{{- define "proctor.labels" -}}
app.kubernetes.io/name: proctor
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "proctor.selector" -}}
app.kubernetes.io/name: proctor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "proctor.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "proctor.secret" -}}
{{ .Values.secrets.existing | default (include "proctor.name" .) }}
{{- end -}}

{{/* Of Pods that play runs: bubblewrap makes namespaces of its own for each, inside a user namespace of the Pod. */}}
{{- define "proctor.playing" -}}
seccompProfile: { type: Unconfined }
procMount: Unmasked
allowPrivilegeEscalation: false
capabilities: { drop: [ALL] }
{{- end -}}
