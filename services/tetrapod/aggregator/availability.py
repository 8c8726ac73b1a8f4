"""The controller of the condition Available of APIServices.

Local APIServices are always available. An external API server is probed when its APIService, Service or endpoints
change, every 30 seconds, and sooner after a failure.

Upstream: kube-aggregator/pkg/controllers/status/{local,remote}.
"""

from __future__ import annotations

import asyncio
from typing import Final

from tetrapod.aggregator.apiservice import APISERVICES, condition, local_condition, service_of
from tetrapod.aggregator.backends import Backends
from tetrapod.aggregator.routing import Records
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.workqueue import WorkQueue
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.proxy import BackendError, Endpoint
from tetrapod.generic.proxy.certificate_metrics import CertificateFailures
from tetrapod.generic.proxy.resolver import Cluster, Unresolvable, ready_addresses
from tetrapod.machinery.conditions import set_condition
from tetrapod.machinery.copying import copy_object
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError

RESYNC: Final = 30.0
ATTEMPTS: Final = 5
TIMEOUT: Final = 5.0
WORKERS: Final = 5
_CERTIFICATES: Final = CertificateFailures("apiserver_kube_aggregator")
_UNAVAILABLE: Final = Gauge(
    "aggregator_unavailable_apiservice",
    "Gauge of APIServices which are marked as unavailable broken down by APIService name.",
    ("name",),
)
_TIMES_UNAVAILABLE: Final = Counter(
    "aggregator_unavailable_apiservice_total",
    "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
    ("name", "reason"),
)


class Unavailable(Exception):
    """The error of a failed probe, whose reason may be temporary. The work queue retries soon."""


class AvailabilityController:
    """The controller of the condition Available, with one queue for local and one for external APIServices.

    Args:
        client: writes the status of APIServices.
        records: all APIServices.
        cluster: the Services and EndpointSlices of the cluster.
        backends: connections to the external servers, for probes.

    Upstream: kube-aggregator/pkg/controllers/status (local and remote).
    """

    def __init__(self, client: Client, records: Records, cluster: Cluster, backends: Backends) -> None:
        self._client = client
        self._records = records
        self._cluster = cluster
        self._backends = backends
        self.local: WorkQueue[str] = WorkQueue("apiservice-status-local-available", self.reconcile_local)
        self.remote: WorkQueue[str] = WorkQueue("apiservice-status-remote-available", self.reconcile)

    def start_local(self, lifecycle: Lifecycle) -> None:
        """Start the background workers that set the condition of local APIServices."""
        lifecycle.background(self.local.name, self.local.run(WORKERS))

    def start_remote(self, lifecycle: Lifecycle) -> None:
        """Start the background workers that probe external APIServices."""
        lifecycle.background(self.remote.name, self.remote.run(WORKERS))

    def changed(self, old: Object | None, new: Object | None) -> None:
        """Handle an event of the APIService informer: queue a new or changed APIService, drop metrics of a deleted one.

        As upstream, an APIService is queued again after this controller's own status updates.

        Args:
            old: the object before the event; None if it was added.
            new: the object after the event; None if it was deleted.
        """
        if new is not None and (
            old is None or old["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"]
        ):
            queue = self.local if service_of(new) is None else self.remote
            queue.add(new["metadata"]["name"])
        elif new is None and old is not None:
            for metric in (_UNAVAILABLE, _TIMES_UNAVAILABLE):
                metric.drop({"name": old["metadata"]["name"]})

    def service_changed(self, namespace: str, name: str) -> None:
        """Queue the external APIServices of a Service that changed or whose endpoints changed."""
        for key in self._records.names_for_service(namespace, name):
            self.remote.add(key)

    async def reconcile_local(self, name: str) -> None:
        """Set the condition Available of a local APIService. An unknown or external one is ignored.

        Raises:
            StatusError: the write failed. A concurrent change or deletion is ignored.
            Unavailable: the API server cannot be reached.
        """
        obj = self._records.get(name)
        if obj is not None and service_of(obj) is None:
            await self._write(obj, local_condition())

    async def reconcile(self, name: str) -> None:
        """Probe an external APIService, set its condition, and queue it again after 30 seconds.

        Raises:
            Unavailable: the probe failed; the work queue retries sooner.
            UnusableBundle: the CA bundle is invalid; the condition is not changed.
            StatusError: the write failed. A concurrent change or deletion is ignored.
        """
        obj = self._records.get(name)
        if obj is None or service_of(obj) is None:
            return
        result = await self.check(obj)
        await self._write(obj, result)
        self.remote.add_after(name, RESYNC)
        if result["reason"] == "FailedDiscoveryCheck":
            raise Unavailable(result["message"])

    async def check(self, obj: Object) -> Object:
        """Return the condition Available that an external APIService must have now, after probing its server.

        Raises:
            UnusableBundle: the CA bundle is invalid, so that the server cannot be probed; the condition is not changed.
        """
        reference = obj["spec"]["service"]
        namespace, name, port = reference["namespace"], reference["name"], reference.get("port", 443)
        service = self._cluster.service(namespace, name)
        location = f'service/{name} in "{namespace}"'
        if service is None:
            return condition("False", "ServiceNotFound", f"{location} is not present")
        if service["spec"].get("type", "ClusterIP") == "ClusterIP":
            service_port = next((p for p in service["spec"].get("ports") or [] if p.get("port") == port), None)
            if service_port is None:
                return condition("False", "ServicePortError", f"{location} is not listening on port {port}")
            slices = self._cluster.endpoint_slices(namespace, name)
            if not slices:
                return condition("False", "EndpointsNotFound", f"cannot find endpointslices for {location}")
            port_name = service_port.get("name", "")
            if not any(True for _ in ready_addresses(slices, port_name)):
                text = f'endpointslices for {location} have no addresses with port name "{port_name}"'
                return condition("False", "MissingEndpoints", text)
        self._backends.tls(obj)
        failure = await self._probe_several(obj)
        if failure is not None:
            return condition("False", "FailedDiscoveryCheck", failure)
        return condition("True", "Passed", "all checks passed")

    async def _probe_several(self, obj: Object) -> str | None:
        """Send 5 probes at once, because the endpoints of a Service may differ.

        Returns:
            None as soon as one succeeds, otherwise the error text of the last failure. Unfinished probes are cancelled.

        Raises:
            UnusableBundle: the CA bundle of the APIService is invalid.
        """
        tasks = [asyncio.create_task(self._probe(obj)) for _ in range(ATTEMPTS)]
        failure: str | None = None
        try:
            for done in asyncio.as_completed(tasks):
                failure = await done
                if failure is None:
                    break
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return failure

    async def _probe(self, obj: Object) -> str | None:
        """Send one probe; return None if it succeeds within 5 seconds, otherwise the error text.

        Raises:
            UnusableBundle: the CA bundle of the APIService is invalid.
        """
        try:
            endpoint = self._backends.endpoint(obj)
        except Unresolvable as error:
            return str(error)
        group, version = obj["spec"].get("group", ""), obj["spec"]["version"]
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        url = f"https://{endpoint.authority}{path}"
        try:
            async with asyncio.timeout(TIMEOUT):
                return await self._ask(obj, endpoint, path, url)
        except BackendError as error:
            _CERTIFICATES.count(error)
            return f'failing or missing response from {url}: Get "{url}": {error}'
        except TimeoutError:
            return (
                f'failing or missing response from {url}: Get "{url}": context deadline exceeded '
                "(Client.Timeout exceeded while awaiting headers)"
            )

    async def _ask(self, obj: Object, endpoint: Endpoint, path: str, url: str) -> str | None:
        connection = await self._backends.ask(obj, path, endpoint=endpoint)
        status = connection.status
        if connection.complete_body() is None:  # the body is irrelevant, and is not read if it is long
            connection.close()
        if not 200 <= status < 300:
            return f"failing or missing response from {url}: bad status from {url}: {status}"
        return None

    async def _write(self, obj: Object, new: Object) -> None:
        name, unavailable = obj["metadata"]["name"], new["status"] != "True"
        _UNAVAILABLE.set((name,), float(unavailable))
        changed = copy_object(obj)
        set_condition(changed, new)
        if changed.get("status") == obj.get("status"):
            return
        if unavailable:
            _TIMES_UNAVAILABLE.add((name, new["reason"]))
        try:
            await self._client.update(APISERVICES, "", changed, subresource="status")
        except StatusError as error:
            if error.code not in (404, 409):  # deleted or changed: the watch event queues it again
                raise
