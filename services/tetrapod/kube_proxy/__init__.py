"""`tetrapod proxy`: a kube-proxy in iptables mode, which turns Services and EndpointSlices into rules of a node.

Upstream: pkg/proxy, cmd/kube-proxy
"""
