"""`ServiceHealth`: the servers at the health check ports of Services.

Load balancers ask there whether this node has endpoints of a Service whose external traffic policy is Local.

Upstream: pkg/proxy/healthcheck/service_health.go
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tetrapod.generic.http.headers import JSON_TYPE, NOSNIFF
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.generic.http.server import HttpServer
from tetrapod.kube_proxy.families import Family
from tetrapod.kube_proxy.health import ProxyHealth
from tetrapod.kube_proxy.http_server import listen_error
from tetrapod.kube_proxy.service_ports import ServiceName
from tetrapod.machinery.golang.ip_addresses import join_host_port
from tetrapod.machinery.golang.quoting import go_quote

log = logging.getLogger(__name__)

_STOP_SECONDS = 1.0


@dataclass(slots=True)
class _Check:
    """The servers of one Service."""

    service: ServiceName
    port: int
    servers: list[HttpServer] = field(default_factory=list)
    endpoints: int = 0


class ServiceHealth:
    """The servers of one family.

    Args:
        node: the name of this node.
        family: the family.
        addresses: the addresses to listen on; None for all addresses of the family.
        health: the health of this proxy, which answers contain.
        report: awaited with a Service and a text if its server cannot start.
    """

    def __init__(
        self,
        node: str,
        family: Family,
        addresses: Sequence[str] | None,
        health: ProxyHealth,
        report: Callable[[ServiceName, str], Awaitable[None]],
    ) -> None:
        self._node = node
        self._family = family
        everything = ("0.0.0.0",) if family is Family.IPV4 else ("::",)
        self._addresses = everything if addresses is None else addresses
        self._health = health
        self._report = report
        self._checks: dict[ServiceName, _Check] = {}

    async def serve(self, ports: Mapping[ServiceName, int], endpoints: Mapping[ServiceName, int]) -> None:
        """Start and stop servers, so that exactly these Services have one. Failures are logged and reported.

        Args:
            ports: the port of each Service.
            endpoints: the number of endpoints on this node, of Services that have any.
        """
        for check in [check for check in self._checks.values() if ports.get(check.service) != check.port]:
            log.info('Closing healthcheck service="%s" port=%d', check.service, check.port)
            del self._checks[check.service]
            await _stop(check)
        for service, port in ports.items():
            if service not in self._checks:
                await self._open(_Check(service, port))
        for check in self._checks.values():
            check.endpoints = endpoints.get(check.service, 0)

    async def stop(self) -> None:
        """Stop all servers."""
        await self.serve({}, {})

    async def _open(self, check: _Check) -> None:
        log.info('Opening healthcheck service="%s" port=%d', check.service, check.port)
        try:
            for address in self._addresses:
                server = HttpServer(self._handler(check), host=address, port=check.port)
                server.only_ipv6 = self._family is Family.IPV6
                await self._start(server, address, check.port)
                check.servers.append(server)
        except OSError as error:
            await _stop(check)  # a later write tries again
            text = f"failed to start healthcheck {go_quote(str(check.service))} on port {check.port}: {error}"
            log.error("node %s %s", self._node, text)
            await self._report(check.service, f"node {self._node} {text}")
            return
        self._checks[check.service] = check

    async def _start(self, server: HttpServer, address: str, port: int) -> None:
        try:
            await server.start()
        except OSError as error:
            network = "tcp4" if self._family is Family.IPV4 else "tcp6"
            raise listen_error(error, network, join_host_port(address, port)) from None

    def _handler(self, check: _Check) -> Handler:
        async def answer(_: Request) -> Response:
            healthy = self._health.healthy
            headers = [JSON_TYPE, NOSNIFF, (b"x-load-balancing-endpoint-weight", str(check.endpoints).encode())]
            status = 200 if check.endpoints and healthy else 503
            return Response(status, headers, _body(check, healthy).encode())

        return answer


def _body(check: _Check, healthy: bool) -> str:
    """Return the body, formatted as upstream's."""
    lines = (
        "{",
        '\t"service": {',
        f'\t\t"namespace": {go_quote(check.service.namespace)},',
        f'\t\t"name": {go_quote(check.service.name)}',
        "\t},",
        f'\t"localEndpoints": {check.endpoints},',
        f'\t"serviceProxyHealthy": {str(healthy).lower()}',
        "}",
    )
    return "\n".join(lines)


async def _stop(check: _Check) -> None:
    for server in check.servers:
        await server.stop(_STOP_SECONDS)
