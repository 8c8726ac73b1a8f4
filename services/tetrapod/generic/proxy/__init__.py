"""The way out: keep-alive connections to backends, whole requests (`fetch`), and passing requests through (`forward`)."""

from tetrapod.generic.proxy.connection import BackendConnection, BackendError
from tetrapod.generic.proxy.endpoint import Endpoint
from tetrapod.generic.proxy.forward import NotUpgraded, forward
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.proxy.tls import ClientTLS

__all__ = ["BackendConnection", "BackendError", "BackendPool", "ClientTLS", "Endpoint", "NotUpgraded", "forward"]
