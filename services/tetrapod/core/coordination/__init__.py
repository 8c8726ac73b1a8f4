"""The kinds of coordination.k8s.io/v1. Upstream: pkg/apis/coordination."""
