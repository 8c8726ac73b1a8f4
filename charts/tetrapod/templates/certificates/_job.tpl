{{/* The pod template that the Job and the CronJob for certificates share. Argument: (dict "root" $ "account" NAME). */}}
{{- define "tetrapod.certificateJob" -}}
{{- $root := .root -}}
{{- $job := $root.Values.certificates.job -}}
{{- $full := include "tetrapod.fullname" $root -}}
backoffLimit: {{ $job.backoffLimit }}
activeDeadlineSeconds: {{ $job.activeDeadlineSeconds }}
template:
  metadata:
    labels:
      {{- include "tetrapod.labels" (dict "root" $root "component" "certificates") | nindent 6 }}
    {{- include "tetrapod.annotations" (dict "root" $root "annotations" $job.annotations) | nindent 4 }}
  spec:
    restartPolicy: OnFailure
    serviceAccountName: {{ .account }}
    # Only this pod sends requests to the cluster in which it runs, because it writes the Secrets.
    automountServiceAccountToken: true
    enableServiceLinks: false
    securityContext:
      {{- toYaml $root.Values.defaults.podSecurityContext | nindent 6 }}
    {{- include "tetrapod.pullSecrets" $root | nindent 4 }}
    {{- with $root.Values.defaults.nodeSelector }}
    nodeSelector:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with $root.Values.defaults.tolerations }}
    tolerations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    containers:
      - name: certs
        image: {{ include "tetrapod.image" (dict "image" $root.Values.image "tag" $root.Chart.AppVersion) }}
        imagePullPolicy: {{ $root.Values.image.pullPolicy }}
        args:
          - certs
          - --out=/certs
          - --hosts={{ include "tetrapod.frontHosts" $root }}
          - --service-hosts={{ include "tetrapod.serviceHosts" (dict "root" $root "component" "{service}") }}
          - --etcd-hosts={{ include "tetrapod.etcdHosts" $root }}
          - --server={{ $root.Values.certificates.server | default (include "tetrapod.frontUrl" $root) }}
          - --renew-before={{ $root.Values.certificates.rotation.renewBefore }}
          - --secrets={{ $full }}
          - --secret-label=app.kubernetes.io/name={{ include "tetrapod.name" $root }}
          - --secret-label=app.kubernetes.io/instance={{ $root.Release.Name }}
          - --secret-label=app.kubernetes.io/component=certificates
        resources:
          {{- toYaml $job.resources | nindent 10 }}
        securityContext:
          {{- toYaml $root.Values.defaults.securityContext | nindent 10 }}
        volumeMounts:
          - name: certs
            mountPath: /certs
          - name: tmp
            mountPath: /tmp
    volumes:
      - name: certs
        emptyDir: {medium: Memory}
      - name: tmp
        emptyDir: {}
{{- end -}}

{{/* The service account, role and binding of a pod that creates certificates. Argument: (dict "root" $ "account" NAME "annotations" …). */}}
{{- define "tetrapod.certificateAccount" -}}
{{- $root := .root -}}
{{- $full := include "tetrapod.fullname" $root -}}
{{- $labels := include "tetrapod.labels" (dict "root" $root "component" "certificates") -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  {{- include "tetrapod.annotations" . | nindent 2 }}
automountServiceAccountToken: false
{{ include "tetrapod.pullSecrets" $root }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ .account }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  {{- include "tetrapod.annotations" . | nindent 2 }}
rules:
  - apiGroups: [""]
    resources: [secrets]
    verbs: [create]
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get, update]
    resourceNames:
      {{- range list "ca" "admin" "monitoring" "aggregator" "core" "extensions" "auth" "etcd" }}
      - {{ $full }}-{{ . }}
      {{- end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .account }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- $labels | nindent 4 }}
  {{- include "tetrapod.annotations" . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ .account }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ $root.Release.Namespace }}
{{- end -}}
