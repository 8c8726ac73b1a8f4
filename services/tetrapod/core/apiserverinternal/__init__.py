"""The kinds of internal.apiserver.k8s.io/v1alpha1. Upstream: pkg/apis/apiserverinternal."""
