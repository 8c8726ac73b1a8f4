"""The delegation chain of API services.

Requests for groups of this cluster's own services go to the service that serves them, by a function call or over mTLS.
"""
