"""Conversion of custom resources by webhooks. Upstream: apiextensions-apiserver/pkg/apiserver/conversion."""
