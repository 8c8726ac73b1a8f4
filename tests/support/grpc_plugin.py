"""The gRPC server of a plugin, built with grpcio, the library of real plugins."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc


def start_plugin(address: str, service: str, methods: Mapping[str, tuple[Any, Any]]) -> grpc.Server:
    """Start a server and return it.

    Args:
        address: where it listens, in grpcio's form.
        service: the full name of the gRPC service.
        methods: by method name, the function that answers and the class of its request.
    """
    server = grpc.server(ThreadPoolExecutor(4))
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=request.FromString,
            response_serializer=lambda message: message.SerializeToString(),
        )
        for name, (answer, request) in methods.items()
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(address)
    server.start()
    return server
