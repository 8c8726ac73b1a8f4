"""API priority and fairness: who is served at once, who waits in which queue, who is refused.

Upstream: k8s.io/apiserver/pkg/util/flowcontrol.
"""
