"""API priority and fairness: decides whether a request is executed, queued or rejected.

Upstream: staging/src/k8s.io/apiserver/pkg/util/flowcontrol
"""
