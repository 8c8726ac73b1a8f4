"""The ConfigMap `extension-apiserver-authentication`, from which extension API servers learn whom to trust.

All API servers of a cluster write to it. Each adds what it needs itself and keeps what others have written, until a CA
certificate there has expired.

Upstream: pkg/controlplane/controller/clusterauthenticationtrust.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import orjson
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from tetrapod.generic.authentication.requestheader import REMOTE_UID_GATE
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.reads import get_or_none
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
_NAMESPACE: Final = "kube-system"
_NAME: Final = "extension-apiserver-authentication"
_CLIENTS: Final = "client-ca-file"
_PROXIES: Final = "requestheader-client-ca-file"
_OPTIONAL: Final = "requestheader-uid-headers"
_LISTS: Final = (
    "requestheader-allowed-names",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    _OPTIONAL,
    "requestheader-username-headers",
)
_SLACK: Final = datetime.timedelta(minutes=5)
"""How long a certificate is kept after it has expired."""


class AuthenticationTrust:
    """Keeps the ConfigMap up to date.

    Args:
        client: reads and writes the ConfigMap.
        required: returns the data that this server needs there, as they are at that time.
    """

    def __init__(self, client: Client, required: Callable[[], dict[str, str]]) -> None:
        self._client = client
        self._required = required
        self._written: dict[str, str] | None = None

    async def write(self) -> None:
        """Create the ConfigMap, or add to it what this server needs.

        A ConfigMap whose lists cannot be read is left as it is.

        Raises:
            StatusError: the ConfigMap cannot be read or written.
            Unavailable: the server cannot be reached.
        """
        required = self._required()
        stored = await get_or_none(self._client, _CONFIG_MAPS, _NAMESPACE, _NAME)
        present = (stored or {}).get("data") or {}
        try:
            data = united(present, required)
        except ValueError as error:
            log.error("the ConfigMap %s/%s has malformed data: %s", _NAMESPACE, _NAME, error)
            return
        if stored is None:
            metadata = {"name": _NAME, "namespace": _NAMESPACE}
            obj: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self._create(obj)
        elif data != present:
            await self._update({**stored, "data": data})
        self._written = required

    async def write_if_changed(self) -> None:
        """Write the ConfigMap if what this server needs has changed, because a CA was replaced. Raises as `write`."""
        if self._written is not None and self._required() != self._written:
            await self.write()

    async def _create(self, obj: Object) -> None:
        try:
            await self._client.create(_CONFIG_MAPS, _NAMESPACE, obj)
        except StatusError as error:
            if error.reason != "AlreadyExists":  # another replica was first: the next call adds to its data
                raise

    async def _update(self, obj: Object) -> None:
        """Update the ConfigMap. If it has become too large, remove it, so that the servers write what is current."""
        try:
            await self._client.update(_CONFIG_MAPS, _NAMESPACE, obj)
        except StatusError as error:
            invalid = error.reason == "Invalid" and "Too long" in str(error)
            if error.reason == "RequestEntityTooLarge" or invalid:
                await self._client.delete(_CONFIG_MAPS, _NAMESPACE, _NAME)
            raise


def united(stored: Mapping[str, str], required: Mapping[str, str]) -> dict[str, str]:
    """Return the data of the ConfigMap with what it has and what is required, without expired CAs.

    Raises:
        ValueError: a list is not a JSON list of strings, or a bundle has no certificates or a malformed one.
    """
    data = {}
    if clients := _certificates(stored.get(_CLIENTS, ""), required.get(_CLIENTS, "")):
        data[_CLIENTS] = clients
    if proxies := _certificates(stored.get(_PROXIES, ""), required.get(_PROXIES, "")):
        data[_PROXIES] = proxies
        for key in _LISTS:
            if key == _OPTIONAL and not feature_gates.enabled(REMOTE_UID_GATE):
                continue
            values = _unique([*_strings(stored.get(key, "")), *_strings(required.get(key, ""))])
            if values or key != _OPTIONAL:
                data[key] = orjson.dumps(values).decode()
    return data


def _certificates(*bundles: str) -> str:
    limit = datetime.datetime.now(datetime.UTC) - _SLACK
    parsed = [
        certificate
        for bundle in bundles
        if bundle
        for certificate in x509.load_pem_x509_certificates(bundle.encode())
        if certificate.not_valid_after_utc > limit
    ]
    return "".join(_unique(certificate.public_bytes(Encoding.PEM).decode() for certificate in parsed))


def _strings(text: str) -> list[str]:
    values = [] if text in ("", "null") else orjson.loads(text)
    if not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
        raise ValueError("not a list of strings")
    return values


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
