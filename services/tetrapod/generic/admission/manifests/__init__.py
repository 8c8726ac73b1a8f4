"""Webhooks and policies from manifest files, which are read from directories on the server's disk instead of the API.

--admission-control-config-file names a directory for each plugin.
Upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/manifest
"""
