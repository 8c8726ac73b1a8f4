"""Calls to webhooks: admission's and conversion's, through the proxy's own transport.

That transport, not an HTTP library, since it can already do what a webhook needs and libraries do not offer together: an address that
is not the name in the certificate, refusals in Go's words, answers bounded while they arrive, and nothing more to import.
"""
