"""The kinds of flowcontrol.apiserver.k8s.io/v1. Upstream: pkg/apis/flowcontrol."""
