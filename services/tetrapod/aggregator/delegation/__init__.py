"""The delegation chain of API services.

Requests for local groups go to the service that serves them, by a function call or over mTLS.
"""
