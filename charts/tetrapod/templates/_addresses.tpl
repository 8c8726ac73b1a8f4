{{/* The URLs and host names of the services, etcd and redis. */}}

{{/* The URL of a service behind the aggregator. Its Service is headless, so its port is the container's. */}}
{{- define "tetrapod.url" -}}
{{- printf "https://%s-%s:6443" (include "tetrapod.fullname" .root) .component -}}
{{- end -}}

{{- define "tetrapod.frontUrl" -}}
{{- printf "https://%s.%s.svc:%d" (include "tetrapod.fullname" .) .Release.Namespace (int .Values.aggregator.service.port) -}}
{{- end -}}

{{/* The host names of the aggregator, separated by commas. */}}
{{- define "tetrapod.frontHosts" -}}
{{- $full := include "tetrapod.fullname" . -}}
{{- $names := list "localhost" "127.0.0.1" $full (printf "%s.%s" $full .Release.Namespace) (printf "%s.%s.svc" $full .Release.Namespace) -}}
{{- $names = append $names (printf "%s.%s.svc.%s" $full .Release.Namespace .Values.clusterDomain) -}}
{{- $names = concat $names .Values.aggregator.hosts .Values.tlsRoute.hostnames -}}
{{- with .Values.ingress.host }}{{ $names = append $names . }}{{ end -}}
{{- with .Values.aggregator.service.loadBalancerIP }}{{ $names = append $names . }}{{ end -}}
{{- $names | uniq | join "," -}}
{{- end -}}

{{/* The host names of one service, or of `{service}`, separated by commas. Argument: (dict "root" $ "component" …). */}}
{{- define "tetrapod.serviceHosts" -}}
{{- $name := printf "%s-%s" (include "tetrapod.fullname" .root) .component -}}
{{- $namespace := .root.Release.Namespace -}}
{{- list $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.%s" $name $namespace .root.Values.clusterDomain) | join "," -}}
{{- end -}}

{{- define "tetrapod.etcdPeersDomain" -}}
{{- printf "%s-etcd-peers.%s.svc" (include "tetrapod.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "tetrapod.etcdHosts" -}}
{{- $domain := include "tetrapod.etcdPeersDomain" . -}}
{{- printf "*.%s,*.%s.%s" $domain $domain .Values.clusterDomain -}}
{{- end -}}

{{/* The URLs of all etcd members, separated by commas. A client uses the next member if one is unavailable. */}}
{{- define "tetrapod.etcdServers" -}}
{{- if .Values.etcd.enabled -}}
{{- $servers := list -}}
{{- range $i := until (int .Values.etcd.replicaCount) -}}
{{- $servers = append $servers (printf "https://%s-etcd-%d.%s:2379" (include "tetrapod.fullname" $) $i (include "tetrapod.etcdPeersDomain" $)) -}}
{{- end -}}
{{- join "," $servers -}}
{{- else -}}
{{- join "," .Values.externalEtcd.endpoints -}}
{{- end -}}
{{- end -}}

{{- define "tetrapod.etcdInitialCluster" -}}
{{- $members := list -}}
{{- range $i := until (int .Values.etcd.replicaCount) -}}
{{- $name := printf "%s-etcd-%d" (include "tetrapod.fullname" $) $i -}}
{{- $members = append $members (printf "%s=https://%s.%s:2380" $name $name (include "tetrapod.etcdPeersDomain" $)) -}}
{{- end -}}
{{- join "," $members -}}
{{- end -}}

{{- define "tetrapod.redisUrl" -}}
{{- if .Values.redis.enabled -}}
{{- printf "redis://%s-redis:6379" (include "tetrapod.fullname" .) -}}
{{- else -}}
{{- .Values.externalRedis.url -}}
{{- end -}}
{{- end -}}

{{/* The name of the Secret with redis' password, or "". */}}
{{- define "tetrapod.redisSecret" -}}
{{- if .Values.redis.enabled -}}
{{- .Values.redis.existingSecret | default (printf "%s-redis" (include "tetrapod.fullname" .)) -}}
{{- else if .Values.externalRedis.url -}}
{{- .Values.externalRedis.existingSecret -}}
{{- end -}}
{{- end -}}

{{- define "tetrapod.redisPasswordKey" -}}
{{- .Values.redis.enabled | ternary "password" .Values.externalRedis.passwordKey -}}
{{- end -}}
