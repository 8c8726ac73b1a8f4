"""HTTP client and proxy: connections to backends, single requests (`fetch`), and forwarding (`forward`)."""

from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.exchange import BackendError, Exchange
from tetrapod.generic.proxy.forward import NotUpgraded, forward
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.tls import ClientTLS

__all__ = ["BackendError", "BackendPool", "ClientTLS", "Endpoint", "Exchange", "NotUpgraded", "forward"]
