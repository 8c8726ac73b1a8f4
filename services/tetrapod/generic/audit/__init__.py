"""Who did what, when, and what came of it: events of requests by a policy, written to a log file or sent to a webhook.

The filter (filters/audit.py) makes an `AuditContext` for a request that the policy wants; endpoints tell it of objects, and it makes
the event of each stage, which goes to a `Backend`. Upstream: k8s.io/apiserver/pkg/audit and plugin/pkg/audit.
"""
