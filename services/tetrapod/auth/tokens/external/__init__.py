"""Service account tokens that a plugin signs (--service-account-signing-endpoint).

Upstream: pkg/serviceaccount/externaljwt
"""
