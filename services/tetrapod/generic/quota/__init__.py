"""ResourceQuotas: what writes use of them, whoever serves the objects (upstream: k8s.io/apiserver/pkg/quota/v1)."""
