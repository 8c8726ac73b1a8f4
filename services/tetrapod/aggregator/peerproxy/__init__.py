"""Requests for resources that only peer API servers serve, and discovery that includes the resources of peers.

A peer API server is another replica of the whole API server, such as one of another version during an upgrade. The peer
services of one replica (core, extensions and auth) are in `aggregator/delegation`.

Upstream: staging/src/k8s.io/apiserver/pkg/util/peerproxy
"""
