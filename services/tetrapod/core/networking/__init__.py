"""The kinds of networking.k8s.io/v1. Upstream: pkg/apis/networking."""
