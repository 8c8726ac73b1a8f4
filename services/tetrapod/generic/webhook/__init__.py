"""Calls to webhooks for admission and conversion, over the transport of the proxy.

HTTP libraries do not offer together what webhooks need: an address that differs from the name in the certificate, Go's
error texts, and responses whose size is limited while they arrive. The proxy's transport does, and needs no further
import.
"""
