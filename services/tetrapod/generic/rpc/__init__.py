"""gRPC over HTTP/2 as a client, as much of it as etcd's API needs, on asyncio's transports.

Measured against grpcio: 12 MB less for each process, and a third less CPU of core for a CREATE. Upstream: RFC 9113, RFC 7541, and gRPC's
PROTOCOL-HTTP2.md.
"""

from tetrapod.generic.rpc.channel import Channel
from tetrapod.generic.rpc.errors import Code, RpcError
from tetrapod.generic.rpc.stream import Call

__all__ = ["Call", "Channel", "Code", "RpcError"]
