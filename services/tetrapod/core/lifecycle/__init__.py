"""The kinds of lifecycle.k8s.io. Upstream: pkg/apis/lifecycle."""
