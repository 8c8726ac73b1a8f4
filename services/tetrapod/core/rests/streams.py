"""`pods/log|exec|attach|portforward` and the proxies: passed to the node's kubelet, with upstream's refusals before.

Upstream: pkg/registry/core/pod/strategy.go (LogLocation, ExecLocation …) and rest/subresources.go. The real protocols are the
kubelet's; what there is here is finding it, and saying why it cannot be reached.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final
from urllib.parse import parse_qs

from tetrapod.core.rests.stores import ENDPOINTS, NODES, PODS, SERVICES, Stores
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.request import Request, Response
from tetrapod.machinery import field, status
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object

_NUMBERS: Final = {"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}
_KUBELET_PORT: Final = 10250


class _NodeRest(Rest):
    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def _pod(self, ctx: Context, name: str) -> Object:
        return (await self._stores[PODS].get(ctx, name)).peek()

    async def _kubelet(self, pod: Object) -> str:
        """Where the kubelet of a pod's node is. Raises StatusError 404 where the node is gone."""
        node = pod["spec"]["nodeName"]
        found = (await self._stores[NODES].get(Context(), node)).peek()
        addresses = {a.get("type"): a.get("address") for a in (found.get("status") or {}).get("addresses") or ()}
        for kind in ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"):
            if addresses.get(kind):
                port = (((found.get("status") or {}).get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port")
                return f"https://{addresses[kind]}:{port or _KUBELET_PORT}"
        raise status.StatusError(500, "", f"no preferred addresses found; known addresses: {sorted(addresses.values())}")


class LogRest(_NodeRest):
    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        options = parse_qs(request.query_string, keep_blank_values=True)
        errors = _log_errors(options)
        if errors:
            raise status.invalid(GroupKind("", "PodLogOptions"), name, errors)
        pod = await self._pod(ctx, name)
        container = choose_container(pod, (options.get("container") or [""])[0])
        if not (pod.get("spec") or {}).get("nodeName"):
            return Response(204, [])
        kubelet = await self._kubelet(pod)
        raise _unreachable(f"{kubelet}/containerLogs/{ctx.namespace}/{name}/{container}")


def _log_errors(options: dict[str, list[str]]) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, least in _NUMBERS.items():
        value = (options.get(name) or [""])[0]
        if not value:
            continue
        try:
            number = int(value)
        except ValueError:
            raise status.bad_request(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None
        if number < least:
            errors.append(field.invalid(name, number, f"must be greater than {'or equal to ' if least == 0 else ''}0"))
    if "sinceTime" in options and "sinceSeconds" in options:
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if "stream" in options:
        errors.append(field.forbidden("stream", "may not be specified"))
    return errors


def choose_container(pod: Object, wanted: str) -> str:
    spec = pod.get("spec") or {}
    kinds = ("initContainers", "containers", "ephemeralContainers")
    names = {kind: [c.get("name", "") for c in spec.get(kind) or ()] for kind in kinds}
    name = pod["metadata"]["name"]
    if wanted:
        if any(wanted in listed for listed in names.values()):
            return wanted
        raise status.bad_request(f"container {wanted} is not valid for pod {name}")
    annotated = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if annotated and any(annotated in listed for listed in names.values()):
        return str(annotated)
    if len(names["containers"]) == 1:
        return str(names["containers"][0])
    listed = [*names["initContainers"], *names["containers"]]
    text = f"a container name must be specified for pod {name}, choose one of: [{' '.join(listed)}]"
    raise status.bad_request(text)


class ExecRest(_NodeRest):
    """exec and attach: a container must be told apart, and the pod be on a node."""

    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        options = parse_qs(request.query_string, keep_blank_values=True)
        pod = await self._pod(ctx, name)
        container = choose_container(pod, (options.get("container") or [""])[0])
        await self._check_host(pod)
        kubelet = await self._kubelet(pod)
        raise _unreachable(f"{kubelet}/{ctx.subresource}/{ctx.namespace}/{name}/{container}")

    async def _check_host(self, pod: Object) -> None:
        if not (pod.get("spec") or {}).get("nodeName"):
            raise status.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")


class PortForwardRest(ExecRest):
    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        pod = await self._pod(ctx, name)
        await self._check_host(pod)
        kubelet = await self._kubelet(pod)
        raise _unreachable(f"{kubelet}/portForward/{ctx.namespace}/{name}")


class PodProxyRest(_NodeRest):
    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        bare = name.split(":")[1] if name.count(":") == 2 else name.split(":", maxsplit=1)[0]  # [scheme:]name[:port]
        pod = await self._pod(ctx, bare)
        address = ((pod.get("status") or {}).get("podIP")) or ""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            raise status.bad_request("address not allowed") from None
        if not found.is_global and (found.is_loopback or found.is_link_local or found.is_unspecified):
            raise status.bad_request("address not allowed")
        raise _unreachable(f"http://{address}{path}")


class ServiceProxyRest(_NodeRest):
    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        bare = name.split(":")[1] if name.count(":") == 2 else name.split(":", maxsplit=1)[0]
        entry = await self._stores[SERVICES].storage.get(f"{ctx.namespace}/{bare}")
        endpoints = await self._stores[ENDPOINTS].storage.get(f"{ctx.namespace}/{bare}")
        ready = endpoints is not None and any(s.get("addresses") for s in endpoints.peek().get("subsets") or ())
        if entry is None or not ready:
            raise status.service_unavailable(f"no endpoints available for service {field.go_quote(name)}")
        raise _unreachable(f"service {bare}")


class NodeProxyRest(_NodeRest):
    async def connect(self, ctx: Context, name: str, path: str, request: Request) -> Response:
        bare = name.split(":")[1] if name.count(":") == 2 else name.split(":", maxsplit=1)[0]
        await self._stores[NODES].get(ctx, bare)
        raise _unreachable(f"node {bare}")


def _unreachable(target: str) -> status.StatusError:
    """There is no kubelet to pass the request to (a control plane without nodes)."""
    return status.StatusError(
        503, "ServiceUnavailable", f"error trying to reach service: {target}: no kubelet is connected to this server", {}
    )


def stream_rests(stores: Stores) -> dict[str, Any]:
    return {
        "pods/log": LogRest(stores),
        "pods/exec": ExecRest(stores),
        "pods/attach": ExecRest(stores),
        "pods/portforward": PortForwardRest(stores),
        "pods/proxy": PodProxyRest(stores),
        "services/proxy": ServiceProxyRest(stores),
        "nodes/proxy": NodeProxyRest(stores),
    }
