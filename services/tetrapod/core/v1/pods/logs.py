"""`pods/log`: reads logs from the kubelet of the pod's node.

Upstream: pkg/registry/core/pod/strategy.go, LogLocation.
"""

from __future__ import annotations

from ssl import SSLCertVerificationError
from typing import Final
from urllib.parse import quote, urlencode

from tetrapod.core.subresources.locations import Backends, kubelet_of, node_name
from tetrapod.core.subresources.stores import PODS, Stores
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.http.request import Request, Response, StreamResponse, StreamWriter
from tetrapod.generic.metrics.counters import Counter
from tetrapod.generic.proxy import BackendError, Exchange
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery import field, status
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.booleans import query_bool
from tetrapod.machinery.golang.integers import parse_int
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.timestamps import parse

_NUMBERS: Final = {"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}
_FLAGS: Final = ("follow", "previous", "timestamps")
_PASSED: Final = ("sinceSeconds", "sinceTime", "tailLines", "limitBytes")
_STREAM_GATE: Final = "PodLogsQuerySplitStreams"
_ALL: Final = "All"
_STREAMS: Final = (_ALL, "Stderr", "Stdout")
_TEXT: Final = [(b"content-type", b"text/plain")]
_LONGEST_ERROR: Final = 200_000
_USAGE: Final = Counter(
    "kube_apiserver_pod_logs_insecure_backend_total",
    "Total number of requests for pods/logs sliced by usage type: enforce_tls, skip_tls_allowed, skip_tls_denied",
    ("usage",),
)
_UNVERIFIED: Final = Counter(
    "kube_apiserver_pod_logs_backend_tls_failure_total",
    "Total number of requests for pods/logs that failed due to kubelet server TLS verification",
)


class LogRest(Rest):
    """The subresource `pods/log`, which responds with the log of one container as text/plain.

    A pod without a node gives an empty response, 204.

    Args:
        stores: the stores by resource, among them those of pods and nodes.
        backends: the connection pool, and the settings of connections to kubelets.
    """

    def __init__(self, stores: Stores, backends: Backends) -> None:
        self._stores = stores
        self._backends = backends

    async def connect(self, ctx: Context, name: str, options: Object, request: Request) -> Response:
        query = request.query().lists
        verify = not query_bool((query.get("insecureSkipTLSVerifyBackend") or ["false"])[0])
        _USAGE.add(("enforce_tls" if verify else "skip_tls_allowed",))
        errors = _log_errors(query)
        if errors:
            raise status.invalid(GroupKind("", "PodLogOptions"), name, errors)
        pod = (await self._stores[PODS].get(ctx, name)).peek()
        container = choose_container(pod, (query.get("container") or [""])[0])
        if not node_name(pod):
            return Response(204, [])
        kubelet = await kubelet_of(self._stores, self._backends, node_name(pod), verify=verify)
        target = f"/containerLogs/{quote(ctx.namespace)}/{quote(name)}/{quote(container)}{_query(query)}"
        request.cancel_when_gone = True
        try:
            connection = await self._backends.pool.exchange(kubelet, "GET", target, [])
            if not 200 <= connection.status <= 206:
                raise _kubelet_error(
                    connection.status, (await connection.read(_LONGEST_ERROR)).decode(errors="replace"), name
                )
        except BackendError as error:
            if isinstance(error.__cause__, SSLCertVerificationError):
                _UNVERIFIED.add()
            raise status.StatusError(500, "", f'Get "https://{kubelet.authority}{target}": {error}') from None
        return _log_response(connection)


def _log_response(connection: Exchange) -> Response:
    """Return the kubelet's response as text/plain: whole if its body has arrived completely, else streamed."""
    whole = connection.complete_body()
    if whole is not None:
        return Response(200, list(_TEXT), whole)

    async def run(writer: StreamWriter) -> None:
        try:
            await connection.pipe(writer)
        finally:
            if not connection.complete:
                connection.close()

    return StreamResponse(200, list(_TEXT), run)


def _kubelet_error(code: int, text: str, name: str) -> status.StatusError:
    """Return the StatusError for an error response of the kubelet, as client-go words it.

    Args:
        code: the kubelet's status code.
        text: the kubelet's body, which only codes 400 and 500 show as the message.
        name: the pod's name.
    """
    if code == 500:
        return status.internal_error(text)
    if code == 400:
        return status.bad_request(text)
    details = {"name": name, "kind": "pods/log", "causes": [{"reason": "UnexpectedServerResponse", "message": text}]}
    if code == 404:
        return status.StatusError(
            404, "NotFound", f"the server could not find the requested resource ( pods/log {name})", details
        )
    message = f"the server responded with the status code {code} but did not return more information ( pods/log {name})"
    return status.StatusError(code, "", message, details)


def _query(options: dict[str, list[str]]) -> str:
    """Return the query for the kubelet's log URL, with its leading "?", or "" if no option is set.

    The options are those of PodLogOptions that the kubelet knows; others are left out.

    Args:
        options: the values of each option in the request's query by name, of which the first counts.
    """
    query = {name: "true" for name in _FLAGS if query_bool((options.get(name) or ["false"])[0])}
    query |= {name: options[name][0] for name in _PASSED if (options.get(name) or [""])[0]}
    if feature_gates.enabled(_STREAM_GATE):
        query["stream"] = _stream(options)
    return f"?{urlencode(sorted(query.items()))}" if query else ""


def _stream(options: dict[str, list[str]]) -> str:
    """Return the name of the streams to read, whose default is "All".

    Args:
        options: the values of each option in the request's query by name, of which the first counts.
    """
    return options["stream"][0] if "stream" in options else _ALL


def _log_errors(options: dict[str, list[str]]) -> list[FieldError]:
    """Return the errors of the PodLogOptions in the query.

    Numbers are not too small, and only one of sinceTime and sinceSeconds is set. `stream` is known and not combined
    with tailLines; without its gate it is not set.

    Args:
        options: the values of each option in the request's query by name, of which the first counts.

    Raises:
        StatusError: 400, a number or a time cannot be parsed.
    """
    errors: list[FieldError] = []
    for name, minimum in _NUMBERS.items():
        value = (options.get(name) or [""])[0]
        if not value:
            continue
        try:
            number = parse_int(value)
        except ValueError as error:
            raise status.bad_request(str(error)) from None
        if number < minimum and not (name == "sinceSeconds" and "sinceTime" in options):
            errors.append(
                field.invalid(name, number, f"must be greater than {'or equal to ' if minimum == 0 else ''}0")
            )
    _check_time((options.get("sinceTime") or [""])[0])
    if "sinceTime" in options and "sinceSeconds" in options:
        errors.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if not feature_gates.enabled(_STREAM_GATE):
        return errors + ([field.forbidden("stream", "may not be specified")] if "stream" in options else [])
    stream = _stream(options)
    if stream not in _STREAMS:
        errors.append(field.not_supported("stream", stream, _STREAMS))
    if stream != _ALL and (options.get("tailLines") or [""])[0]:
        errors.append(field.forbidden("[]", "`tailLines` and specific `stream` are mutually exclusive for now"))
    return errors


def _check_time(text: str) -> None:
    """Accept "" and RFC 3339 times, raising StatusError 400 with Go's error text for others."""
    if text:
        try:
            parse(text)
        except ValueError as error:
            raise status.bad_request(str(error)) from None


def choose_container(pod: Object, requested: str) -> str:
    """Return the container `requested`, else the one in the pod's default-container annotation, else its only one.

    Args:
        requested: the requested name, which may be that of an init or ephemeral container; "" if the request has none.

    Raises:
        StatusError: 400, the container does not exist or must be named.
    """
    spec = pod.get("spec") or {}
    kinds = ("initContainers", "containers", "ephemeralContainers")
    names = {kind: [c.get("name", "") for c in spec.get(kind) or ()] for kind in kinds}
    name = pod["metadata"]["name"]
    if requested:
        if any(requested in container_names for container_names in names.values()):
            return requested
        raise status.bad_request(f"container {requested} is not valid for pod {name}")
    annotated = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    if annotated and any(annotated in container_names for container_names in names.values()):
        return str(annotated)
    if len(names["containers"]) == 1:
        return str(names["containers"][0])
    container_names = [*names["initContainers"], *names["containers"]]
    text = f"a container name must be specified for pod {name}, choose one of: [{' '.join(container_names)}]"
    raise status.bad_request(text)
