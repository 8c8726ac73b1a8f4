"""Auditing: events about requests, selected by a policy, and written to a log file or sent to a webhook.

The filter (filters/audit.py) creates an `AuditContext` for each request that the policy selects. Endpoints give it the
objects of the request. It creates the event of each stage and passes it to a `Backend`.
Upstream: k8s.io/apiserver/pkg/audit and plugin/pkg/audit
"""
