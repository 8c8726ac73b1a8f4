"""The kinds of discovery.k8s.io/v1. Upstream: pkg/apis/discovery."""
