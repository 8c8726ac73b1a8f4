"""Conversion of custom resources by webhooks (upstream: apiextensions-apiserver/pkg/apiserver/conversion)."""
