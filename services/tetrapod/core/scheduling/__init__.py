"""The kinds of scheduling.k8s.io/v1. Upstream: pkg/apis/scheduling."""
