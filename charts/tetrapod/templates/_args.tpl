{{/* The command line of one of the four services. Argument: (dict "root" $ "component" … "values" its values). */}}
{{- define "tetrapod.args" -}}
{{- $root := .root -}}
{{- $certs := printf "/certs/%s" .component -}}
- serve
- {{ .component }}
- --data-dir={{ $certs }}
- --etcd-servers={{ include "tetrapod.etcdServers" $root }}
{{- if $root.Values.etcd.enabled }}
- --etcd-cafile={{ $certs }}/etcd-ca.crt
- --etcd-certfile={{ $certs }}/etcd-client.crt
- --etcd-keyfile={{ $certs }}/etcd-client.key
{{- else if $root.Values.externalEtcd.existingSecret }}
- --etcd-cafile=/certs/external-etcd/{{ $root.Values.externalEtcd.caKey }}
- --etcd-certfile=/certs/external-etcd/{{ $root.Values.externalEtcd.certKey }}
- --etcd-keyfile=/certs/external-etcd/{{ $root.Values.externalEtcd.keyKey }}
{{- end }}
{{- if and (not $root.Values.etcd.enabled) $root.Values.externalEtcd.prefix }}
- --etcd-prefix={{ $root.Values.externalEtcd.prefix }}
{{- end }}
- --requestheader-allowed-names=front-proxy-client
- --shutdown-delay-duration={{ .values.shutdownDelayDuration }}
- --logging-format={{ .values.logFormat }}
- --v={{ .values.logVerbosity }}
{{- if eq .component "aggregator" }}
- --core-url={{ include "tetrapod.url" (dict "root" $root "component" "core") }}
- --extensions-url={{ include "tetrapod.url" (dict "root" $root "component" "extensions") }}
{{- with $root.Values.aggregator.auditPolicy }}
- --audit-policy-file=/etc/tetrapod/audit/policy.yaml
- --audit-log-path=-
{{- end }}
{{- else }}
- --aggregator-url={{ include "tetrapod.frontUrl" $root }}
{{- end }}
{{- if ne .component "auth" }}
- --auth-url={{ include "tetrapod.url" (dict "root" $root "component" "auth") }}
{{- end }}
{{- with include "tetrapod.redisUrl" $root }}
- --redis-url={{ . }}
{{- if include "tetrapod.redisSecret" $root }}
- --redis-password-file=/certs/redis/password
{{- end }}
{{- end }}
{{- if eq .component "core" }}
- --service-cluster-ip-range={{ $root.Values.core.serviceClusterIPRange }}
- --service-node-port-range={{ $root.Values.core.serviceNodePortRange }}
{{- end }}
{{- if and (has .component (list "core" "auth")) $root.Values.serviceAccountIssuer }}
- --service-account-issuer={{ $root.Values.serviceAccountIssuer }}
{{- end }}
{{- if and (eq .component "auth") $root.Values.auth.enableBootstrapTokenAuth }}
- --enable-bootstrap-token-auth
{{- end }}
{{- with .values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}
