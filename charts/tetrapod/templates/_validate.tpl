{{/* Rejects values that exclude each other, which a schema cannot express. */}}
{{- define "tetrapod.validate" -}}
{{- if and (not .Values.etcd.enabled) (not .Values.externalEtcd.endpoints) -}}
{{- fail "etcd.enabled is false: externalEtcd.endpoints must name the etcd to use" -}}
{{- end -}}
{{- if and .Values.etcd.enabled .Values.externalEtcd.endpoints -}}
{{- fail "externalEtcd.endpoints is given: set etcd.enabled to false" -}}
{{- end -}}
{{- if and .Values.redis.enabled .Values.externalRedis.url -}}
{{- fail "externalRedis.url is given: set redis.enabled to false" -}}
{{- end -}}
{{- if contains "@" .Values.externalRedis.url -}}
{{- fail "externalRedis.url holds a password, which would stand on the command line: put it into a Secret and name it in externalRedis.existingSecret" -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) -}}
{{- fail "ingress.enabled is true: ingress.host must say the name that TLS is passed through for" -}}
{{- end -}}
{{- if and .Values.tlsRoute.enabled (or (not .Values.tlsRoute.parentRefs) (not .Values.tlsRoute.hostnames)) -}}
{{- fail "tlsRoute.enabled is true: tlsRoute.parentRefs and tlsRoute.hostnames must be given" -}}
{{- end -}}
{{- if eq .Values.certificates.mode "existing" -}}
{{- $needed := list "aggregator" "core" "extensions" "auth" "monitoring" -}}
{{- if .Values.etcd.enabled }}{{ $needed = append $needed "etcd" }}{{ end -}}
{{- range $needed -}}
{{- if not (index $.Values.certificates.existingSecrets .) -}}
{{- fail (printf "certificates.mode is existing: certificates.existingSecrets.%s must name a Secret" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $known := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-etcd" (include "tetrapod.fullname" .)) -}}
{{- if and .Values.etcd.enabled $known -}}
{{- if ne (int $known.spec.replicas) (int .Values.etcd.replicaCount) -}}
{{- fail (printf "etcd.replicaCount: %d members run, and members are added and removed one by one, by etcdctl member; see \"Changing the number of members\" in README.md" (int $known.spec.replicas)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
