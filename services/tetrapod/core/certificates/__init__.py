"""The kinds of certificates.k8s.io/v1. Upstream: pkg/apis/certificates."""
