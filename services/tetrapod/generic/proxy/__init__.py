"""HTTP client and proxy: keep-alive connections to backends, single requests (`fetch`), and forwarding (`forward`)."""

from tetrapod.generic.proxy.connection import BackendConnection, BackendError
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.forward import NotUpgraded, forward
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.tls import ClientTLS

__all__ = ["BackendConnection", "BackendError", "BackendPool", "ClientTLS", "Endpoint", "NotUpgraded", "forward"]
