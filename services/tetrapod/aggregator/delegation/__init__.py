"""The delegation chain of API services.

Forwarding of requests to the service (core, extensions or auth) of their API group, by a function call or over mTLS.
"""
