"""The egress selector: the proxies by way of which the server connects to the cluster, the control plane and etcd.

Upstream: k8s.io/apiserver/pkg/server/egressselector
"""
