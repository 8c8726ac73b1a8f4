"""The kinds of node.k8s.io/v1. Upstream: pkg/apis/node."""
