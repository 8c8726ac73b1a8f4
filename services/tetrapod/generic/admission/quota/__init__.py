"""ResourceQuotas: the usage of writes, in any service (upstream: staging/src/k8s.io/apiserver/pkg/quota/v1)."""
