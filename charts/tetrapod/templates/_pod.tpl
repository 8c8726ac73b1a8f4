{{/* Parts that pod specs share. */}}

{{/* The scheduling of pods. Argument: (dict "root" $ "component" … "values" …). */}}
{{- define "tetrapod.scheduling" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- $preset := .values.podAntiAffinityPreset | default "" }}
{{- if .values.affinity }}
affinity:
  {{- toYaml .values.affinity | nindent 2 }}
{{- else if eq $preset "soft" }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "tetrapod.selectorLabels" . | nindent 14 }}
{{- else if eq $preset "hard" }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "tetrapod.selectorLabels" . | nindent 12 }}
{{- end }}
{{- $selector := dict "matchLabels" (include "tetrapod.selectorLabels" . | fromYaml) }}
{{- $constraints := list }}
{{- range .values.topologySpreadConstraints }}
{{- $constraints = append $constraints (merge (dict) . (dict "labelSelector" $selector)) }}
{{- end }}
{{- with $constraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The Secret with the certificates of a service, etcd, admin or monitoring. Argument: (dict "root" $ "component" …). */}}
{{- define "tetrapod.certificateSecret" -}}
{{- if eq .root.Values.certificates.mode "existing" -}}
{{- index .root.Values.certificates.existingSecrets .component -}}
{{- else -}}
{{- printf "%s-%s" (include "tetrapod.fullname" .root) .component -}}
{{- end -}}
{{- end -}}

{{/* The volume `certs`. With cert-manager it is projected from several Secrets, because each certificate has its own. */}}
{{- define "tetrapod.certificateVolume" -}}
{{- $root := .root -}}
{{- $full := include "tetrapod.fullname" $root -}}
{{- $component := .component -}}
- name: certs
{{- if ne $root.Values.certificates.mode "cert-manager" }}
  secret:
    secretName: {{ include "tetrapod.certificateSecret" . }}
    defaultMode: 0440
{{- else if eq $component "etcd" }}
  projected:
    defaultMode: 0440
    sources:
      {{- include "tetrapod.projected" (list (printf "%s-etcd-tls" $full) "tls.crt" "tls.crt" "tls.key" "tls.key" "ca.crt" "ca.crt") | nindent 6 }}
      {{- include "tetrapod.projected" (list (printf "%s-etcd-peer" $full) "tls.crt" "peer.crt" "tls.key" "peer.key") | nindent 6 }}
      {{- include "tetrapod.projected" (list (printf "%s-etcd-client" $full) "tls.crt" "client.crt" "tls.key" "client.key") | nindent 6 }}
{{- else if eq $component "monitoring" }}
  projected:
    defaultMode: 0440
    sources:
      {{- include "tetrapod.projected" (list (printf "%s-monitoring" $full) "tls.crt" "client.crt" "tls.key" "client.key") | nindent 6 }}
      {{- include "tetrapod.projected" (list (printf "%s-aggregator-tls" $full) "ca.crt" "ca.crt") | nindent 6 }}
{{- else }}
  projected:
    defaultMode: 0440
    sources:
      {{- include "tetrapod.projected" (list (printf "%s-%s-tls" $full $component) "tls.crt" "tls.crt" "tls.key" "tls.key" "ca.crt" "ca.crt") | nindent 6 }}
      {{- include "tetrapod.projected" (list (printf "%s-%s-client" $full $component) "tls.crt" "client.crt" "tls.key" "client.key" "ca.crt" "client-ca.crt") | nindent 6 }}
      {{- if eq $component "aggregator" }}
      {{- include "tetrapod.projected" (list (printf "%s-front-proxy-client" $full) "tls.crt" "front-proxy-client.crt" "tls.key" "front-proxy-client.key" "ca.crt" "front-proxy-ca.crt") | nindent 6 }}
      {{- else }}
      {{- include "tetrapod.projected" (list (printf "%s-front-proxy-client" $full) "ca.crt" "front-proxy-ca.crt") | nindent 6 }}
      {{- end }}
      {{- if $root.Values.etcd.enabled }}
      {{- include "tetrapod.projected" (list (printf "%s-%s-etcd-client" $full $component) "tls.crt" "etcd-client.crt" "tls.key" "etcd-client.key" "ca.crt" "etcd-ca.crt") | nindent 6 }}
      {{- end }}
      {{- if eq $component "auth" }}
      {{- include "tetrapod.projected" (list (printf "%s-auth-signing" $full) "tls.key" "sa.key") | nindent 6 }}
      {{- end }}
{{- end }}
{{- end -}}

{{/* A source of a projected volume. Argument: (list SECRET KEY PATH KEY PATH …). */}}
{{- define "tetrapod.projected" }}
- secret:
    name: {{ first . }}
    items:
      {{- range $pair := chunk 2 (rest .) }}
      - key: {{ first $pair }}
        path: {{ last $pair }}
      {{- end }}
{{- end -}}
