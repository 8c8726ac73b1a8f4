"""The program: connects to the API, makes the proxiers, and runs until a signal or a change that needs a new start.

Upstream: cmd/kube-proxy/app/server.go
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from tetrapod.generic.client.events import EventRecorder
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.configuration.watching import stamp
from tetrapod.generic.http.request import Handler
from tetrapod.generic.http.server import HttpServer
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.kube_proxy import sysctls
from tetrapod.kube_proxy.assembly import Assembly, Host, prepare_kernel, supported_families
from tetrapod.kube_proxy.configuration import Configuration
from tetrapod.kube_proxy.connection import connect
from tetrapod.kube_proxy.health import HealthHandler, ProxyHealth
from tetrapod.kube_proxy.http_server import serve
from tetrapod.kube_proxy.metrics_server import MetricsHandler
from tetrapod.kube_proxy.node import NodeWatch, addresses_by_family
from tetrapod.kube_proxy.node_ports import expand
from tetrapod.kube_proxy.pod_traffic import NODE_CIDR
from tetrapod.kube_proxy.proxier import Proxier
from tetrapod.kube_proxy.warnings import doubts
from tetrapod.machinery.gvk import GroupVersionResource, Object

log = logging.getLogger(__name__)

_SERVICES: Final = GroupVersionResource("", "v1", "services")
_ENDPOINT_SLICES: Final = GroupVersionResource("discovery.k8s.io", "v1", "endpointslices")
_NOT_OURS: Final = "!service.kubernetes.io/service-proxy-name"
_NOT_HEADLESS: Final = "!service.kubernetes.io/headless"
_LISTEN_AGAIN_SECONDS: Final = 5.0
_FILE_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 1.0
_ACTION: Final = "StartKubeProxy"
_HEALTHZ_FAILURE: Final = (
    "FailedToStartProxierHealthcheck",
    "healthz server failed: failed to start proxy healthz on {}: ",
)
_METRICS_FAILURE: Final = "FailedToStartMetricServer", ""
_DEFAULT_MODE: Final = (
    "No kube-proxy mode specified: defaulting to 'iptables'. Note that in Kubernetes 1.40 the default mode will switch "
    "to 'nftables'. If you wish to continue using 'iptables' mode, you must explicitly specify 'mode: iptables' in the "
    "kube-proxy config file, or '--proxy-mode iptables' on the kube-proxy command line."
)


@dataclass(frozen=True, slots=True)
class Start:
    """How the program is started.

    Attributes:
        configuration: the settings, validated.
        server: the URL of the API server; "" for that of the kubeconfig.
        file: the file of the settings; "" for none. If it changes, the program ends.
        init_only: whether to end after the kernel's settings are set.
        mode_is_default: whether the kind of the rules was not configured.
        flags: the values of the flags by name.
    """

    configuration: Configuration
    server: str = ""
    file: str = ""
    init_only: bool = False
    mode_is_default: bool = False
    flags: Mapping[str, str] = field(default_factory=dict)


async def run(start: Start) -> None:
    """Run until SIGTERM or SIGINT. The rules stay.

    Raises:
        ValueError, OSError: the program cannot start, or the file of the settings has changed.
        NodeChanged: the node has changed, so that the program must start again.
    """
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with AsyncExitStack() as stack:
        pool = BackendPool()
        stack.push_async_callback(pool.close)
        program = _Program(start, pool)
        stack.push_async_callback(program.stop)
        program.background(stopping.wait())
        program.background(program.start())
        await program.wait()


class _Program:
    def __init__(self, start: Start, pool: BackendPool) -> None:
        self._start = start
        self._configuration = start.configuration
        self._client: Client = connect(pool, self._configuration.kubeconfig, start.server)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = asyncio.Event()
        self._servers: list[HttpServer] = []
        self._proxiers: list[Proxier] = []
        self._recorder = EventRecorder(self._client, "kube-proxy")

    def background(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run a coroutine in the background. If it ends, `wait` returns or raises its exception."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._ended.set())

    async def wait(self) -> None:
        """Wait until a background task has ended, and raise its exception if it has one."""
        await self._ended.wait()
        for task in self._tasks:
            if task.done():
                task.result()

    async def stop(self) -> None:
        """End all tasks and servers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.stop(_STOP_SECONDS)
        for proxier in self._proxiers:
            await proxier.stop()

    async def start(self) -> None:
        """Start everything, and run until the node changes."""
        configuration = self._configuration
        name = _node_name(configuration)
        watch = NodeWatch(
            self._client,
            name,
            needs_pod_cidrs=configuration.detect_local_mode == NODE_CIDR,
            zone_changed=self._zone_changed,
        )
        self.background(watch.run())
        if self._start.file:
            self.background(_watch_file(self._start.file))
        await watch.wait_for_addresses()
        primary, addresses = addresses_by_family(watch.addresses, configuration.bind_address)
        host = Host(name, primary, addresses, watch.pod_cidrs)
        entries = expand(configuration.node_port_addresses, addresses)
        self._configuration = configuration = replace(configuration, node_port_addresses=entries)
        sysctls.apply(configuration.conntrack)
        if text := doubts(configuration, primary, watch.pod_cidrs):
            log.error("Kube-proxy configuration may be incomplete or incorrect: %s", text)
        families = await supported_families(configuration, host)
        prepare_kernel(configuration)
        if self._start.init_only:
            log.info("System initialized and --init-only specified")
            return
        _set_oom_score(configuration.oom_score_adj)
        health = ProxyHealth(2 * configuration.sync_period)
        assembly = Assembly(configuration, host, health, self._recorder)
        self._proxiers = [assembly.proxier(iptables) for iptables in families.values()]
        handlers = HealthHandler(health, watch.node), MetricsHandler(configuration, self._start.flags)
        self.background(self._serve(configuration.healthz_bind_address, handlers[0], *_HEALTHZ_FAILURE))
        self.background(self._serve(configuration.metrics_bind_address, handlers[1], *_METRICS_FAILURE))
        for proxier in self._proxiers:
            self.background(proxier.run())
        watch.follow()
        self.background(self._follow())
        await self._report_start(_node_reference(name))
        await watch.until_changed()

    def _zone_changed(self, zone: str) -> None:
        for proxier in self._proxiers:
            proxier.zone_changed(zone)

    async def _report_start(self, node: Object) -> None:
        if self._start.mode_is_default:
            log.error(_DEFAULT_MODE)
            await self._recorder.record_warning(node, "KubeProxyDefaultMode", _ACTION, _DEFAULT_MODE)
        await self._recorder.record_normal(node, "Starting", _ACTION, "")

    async def _serve(self, address: str, handler: Handler, reason: str, head: str) -> None:
        """Serve at an address for ever. If that fails, try again later, or raise the error if that is configured.

        Args:
            address: the address; "" to do nothing.
            handler: answers the requests.
            reason: the reason of the Event about a failure that ends the proxy.
            head: the beginning of the error text, with a place for the address.
        """
        while address:
            try:
                self._servers.append(await serve(address, handler))
                break
            except OSError as error:
                text = head.format(address) + str(error)
                log.error("%s", text)
                if self._configuration.bind_address_hard_fail:
                    node = _node_reference(_node_name(self._configuration))
                    await self._recorder.record_warning(node, reason, _ACTION, text)
                    raise OSError(text) from None
                await asyncio.sleep(_LISTEN_AGAIN_SECONDS)
        await asyncio.Event().wait()

    async def _follow(self) -> None:
        """Pass the Services and EndpointSlices of the API on to the proxiers."""
        services = Informer(
            self._client,
            _SERVICES,
            label_selector=_NOT_OURS,
            field_selector="spec.clusterIP!=None",
            transform=_without_managed_fields,
        )
        slices = Informer(
            self._client, _ENDPOINT_SLICES, label_selector=_NOT_HEADLESS, transform=_without_managed_fields
        )
        for proxier in self._proxiers:
            services.handlers.append(proxier.service_changed)
            slices.handlers.append(proxier.endpoint_slice_changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(services.run())
            group.create_task(slices.run())
            await services.synced.wait()
            await slices.synced.wait()
            for proxier in self._proxiers:
                proxier.all_received()


def _without_managed_fields(obj: Object) -> Object:
    obj["metadata"].pop("managedFields", None)
    return obj


def _node_name(configuration: Configuration) -> str:
    name = (configuration.hostname_override or socket.gethostname()).strip().lower()
    if not name:
        raise ValueError("empty hostname is invalid")
    return name


def _node_reference(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": ""}}


def _set_oom_score(score: int) -> None:
    try:
        Path("/proc/self/oom_score_adj").write_text(str(score), "utf-8")
    except OSError as error:
        log.info("Failed to apply OOMScore: %s", error)


async def _watch_file(path: str) -> None:
    """Wait until a file changes.

    Raises:
        ValueError: it has changed. The text is upstream's.
    """
    first = stamp(path)
    while stamp(path) == first:  # noqa: ASYNC110 - the project uses no kernel notifications (watching.py)
        await asyncio.sleep(_FILE_SECONDS)
    raise ValueError("content of the proxy server's configuration file was updated")
