"""Webhooks and policies in manifest files, which --admission-control-config-file names a directory of.

Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/manifest
"""
