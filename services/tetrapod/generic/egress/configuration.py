"""The file of --egress-selector-config-file: an EgressSelectorConfiguration, with upstream's error texts.

Upstream: k8s.io/apiserver/pkg/server/egressselector/config.go
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tetrapod.generic.configuration.files import read
from tetrapod.generic.configuration.loading import Kinds, load
from tetrapod.generic.configuration.schemas import kind, list_of, pointer, string, struct
from tetrapod.machinery.field import FieldError, child, duplicate, index, invalid, not_supported, required
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

DIRECT: Final = "Direct"
HTTP_CONNECT: Final = "HTTPConnect"
GRPC: Final = "GRPC"
_PROTOCOLS: Final = (DIRECT, HTTP_CONNECT, GRPC)
_NAMES: Final = ("cluster", "controlplane", "etcd")
_KIND: Final = "EgressSelectorConfiguration"
_PATH: Final = "service.connection"


def read_configuration(path: str) -> Object:
    """Return the EgressSelectorConfiguration in a file. `validation_errors` checks its values.

    Raises:
        ValueError: the file cannot be read or decoded; the text is upstream's.
    """
    try:
        data = read(path)
    except ValueError as error:
        raise ValueError(f"unable to read egress selector configuration from {go_quote(path)} [{error}]") from None
    return load(data, _kinds())


def _kinds() -> Kinds:
    tls = pointer(
        struct("v1beta1.TLSConfig", caBundle=string(), clientKey=string(), clientCert=string(), tlsServerName=string())
    )
    transport = pointer(
        struct(
            "v1beta1.Transport",
            tcp=pointer(struct("v1beta1.TCPTransport", url=string(), tlsConfig=tls)),
            uds=pointer(struct("v1beta1.UDSTransport", udsName=string())),
        )
    )
    connection = struct("v1beta1.Connection", proxyProtocol=string(), transport=transport)
    selection = struct("v1beta1.EgressSelection", name=string(), connection=connection)
    shape = kind(f"v1beta1.{_KIND}", egressSelections=list_of(selection))
    return {(f"apiserver.k8s.io/{version}", _KIND): shape for version in ("v1beta1", "v1alpha1")}


def validation_errors(config: Object) -> list[FieldError]:
    """Return the errors of a configuration.

    Upstream: ValidateEgressSelectorConfiguration
    """
    errors: list[FieldError] = []
    selections = config.get("egressSelections") or []
    for selection in selections:
        errors += _connection_errors(selection.get("connection") or {})
    seen: set[str] = set()
    for i, selection in enumerate(selections):
        name = (selection.get("name") or "").lower()
        if name in seen:
            errors.append(duplicate(index(_PATH, i), name))
            continue
        seen.add(name)
        if name not in _NAMES:
            errors.append(not_supported(_PATH, name, _NAMES))
    return errors


def _connection_errors(connection: Object) -> list[FieldError]:
    protocol, transport = connection.get("proxyProtocol") or "", connection.get("transport")
    if protocol == DIRECT:
        if transport is None:
            return []
        return [invalid(child(_PATH, "transport"), "direct", "config must be absent for direct connect")]
    if protocol == HTTP_CONNECT:
        return _http_connect_errors(transport)
    if protocol == GRPC:
        return _grpc_errors(transport)
    return [not_supported(child(_PATH, "protocol"), protocol, _PROTOCOLS)]


def _http_connect_errors(transport: Object | None) -> list[FieldError]:
    if transport is None:
        return [required(child(_PATH, "transport"), "transport must be set for HTTPConnect")]
    tcp, uds = transport.get("tcp"), transport.get("uds")
    if tcp is not None and uds is not None:
        return [invalid(child(_PATH, "tcp"), _go_names(tcp), "TCP and UDS cannot both be set")]
    if tcp is not None:
        return _tcp_errors(tcp)
    if uds is not None:
        return _uds_errors(uds)
    return [required(child(_PATH, "tcp"), "One of TCP or UDS must be set")]


def _go_names(tcp: Object) -> Object:
    """Return a TCP transport with the field names of upstream's internal type, which errors show."""
    tls = tcp.get("tlsConfig")
    names = {"CABundle": "caBundle", "ClientKey": "clientKey", "ClientCert": "clientCert"}
    names["TLSServerName"] = "tlsServerName"
    tls_config = None if tls is None else {name: tls.get(field) or "" for name, field in names.items()}
    return {"URL": tcp.get("url") or "", "TLSConfig": tls_config}


def _grpc_errors(transport: Object | None) -> list[FieldError]:
    if transport is None:
        return [required(child(_PATH, "transport"), "transport must be set for GRPC")]
    if (uds := transport.get("uds")) is not None:
        return _uds_errors(uds)
    return [required(child(_PATH, "uds"), "UDS must be set with GRPC")]


def _uds_errors(uds: Object) -> list[FieldError]:
    if uds.get("udsName"):
        return []
    return [invalid(child(_PATH, "udsName"), "nil", "must be present for UDS connections")]


def _tcp_errors(tcp: Object) -> list[FieldError]:
    url, tls = tcp.get("url") or "", tcp.get("tlsConfig")
    if url.startswith("http://"):
        if tls is None:
            return []
        return [invalid(child(_PATH, "tlsConfig"), "nil", "config must not be present when using HTTP")]
    if url.startswith("https://"):
        return _tls_errors(tls)
    return [invalid(child(_PATH, "url"), url, "supported connection protocols are http:// and https://")]


def _tls_errors(tls: Object | None) -> list[FieldError]:
    if tls is None:
        return [required(child(_PATH, "tlsConfig"), "TLSConfig must be present when using HTTPS")]
    path, errors = child(_PATH, "tlsConfig"), []
    bundle, certificate, key = tls.get("caBundle"), tls.get("clientCert"), tls.get("clientKey")
    if bundle and not Path(bundle).exists():
        errors.append(invalid(child(path, "caBundle"), bundle, "TLS config ca bundle does not exist"))
    if not certificate:
        errors.append(invalid(child(path, "clientCert"), "nil", "Using TLS requires clientCert"))
    elif not Path(certificate).exists():
        errors.append(invalid(child(path, "clientCert"), certificate, "TLS client cert does not exist"))
    if not key:
        errors.append(invalid(child(path, "clientKey"), "nil", "Using TLS requires requires clientKey"))
    elif not Path(key).exists():
        errors.append(invalid(child(path, "clientKey"), key, "TLS client key does not exist"))
    return errors
