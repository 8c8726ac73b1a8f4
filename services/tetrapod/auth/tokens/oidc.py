"""OIDC discovery of the service account issuer, where other systems get the keys that verify its tokens.

`Routes.add_rest` registers both paths.

Upstream: pkg/serviceaccount/openidmetadata.go and pkg/routes/openidmetadata.go.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import orjson

from tetrapod.auth.tokens.keys import KeySource
from tetrapod.generic.http.negotiation.media_types import check_route_accept
from tetrapod.generic.http.request import Handler, Request, Response
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
JWKS_PATH: Final = "/openid/v1/jwks"
_JSON: Final = "application/json"
_JWKS: Final = "application/jwk-set+json"
_ABOUT_CONFIGURATION: Final = "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
_ABOUT_KEYS: Final = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"


def discovery_routes(issuer: str, keys: KeySource, jwks_uri: str) -> dict[str, Handler]:
    """Return the handlers of the discovery document and the key set, by path.

    The result is {}, and a warning is logged, if the issuer cannot be discovered: it is not an https URL, has a query
    or fragment, `jwks_uri` is empty, or no key is published.

    Args:
        issuer: the first value of --service-account-issuer.
        keys: the keys, of which those are shown that are published.
        jwks_uri: the URL of the key set, for the discovery document.
    """
    if reason := _undiscoverable(issuer, jwks_uri):
        log.warning("the endpoints of ServiceAccountIssuerDiscovery are not enabled: %s", reason)
        return {}
    documents = _Documents(issuer, keys, jwks_uri)
    if not documents.key_set:
        log.warning(
            "the endpoints of ServiceAccountIssuerDiscovery are not enabled: no keys provided for validating keyset"
        )
        return {}
    return {
        CONFIGURATION_PATH: _document(lambda: documents.configuration, keys, _JSON),
        JWKS_PATH: _document(lambda: documents.key_set, keys, _JWKS),
    }


class _Documents:
    """The two documents, which are made again after the keys have changed. Without published keys they remain.

    Attributes:
        configuration: the discovery document as JSON; empty if no key has been published yet.
        key_set: the key set as JSON; empty likewise.
    """

    def __init__(self, issuer: str, keys: KeySource, jwks_uri: str) -> None:
        self._issuer, self._keys, self._jwks_uri = issuer, keys, jwks_uri
        self.configuration = b""
        self.key_set = b""
        keys.listeners.append(self._update)
        self._update()

    def _update(self) -> None:
        published = [key for key in self._keys.keys if key.published]
        if not published:
            return
        configuration = {
            "issuer": self._issuer,
            "jwks_uri": self._jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in published}),
        }
        self.configuration = orjson.dumps(configuration)
        self.key_set = orjson.dumps({"keys": [key.jwk() for key in published]})


def _undiscoverable(issuer: str, jwks_uri: str) -> str:
    """Return why the issuer cannot be discovered, in upstream's words, or "" if it can."""
    parts = urlsplit(issuer)
    if not jwks_uri:
        return "either the JWKS URI or the default external address, or both, must be set"
    if parts.scheme != "https":
        return f"issuer URL must use https scheme, got: {issuer}"
    if parts.query:
        return f"issuer URL may not include a query, got: {issuer}"
    return f"issuer URL may not include a fragment, got: {issuer}" if parts.fragment else ""


def openapi_documents() -> dict[str, Callable[[], Object]]:
    """Return functions that create the OpenAPI documents of the two paths of OIDC discovery, by document name."""

    def configuration() -> Object:
        from tetrapod.generic.openapi.v3 import text_document  # imported at the first request

        return text_document(
            f"{CONFIGURATION_PATH}/", "getServiceAccountIssuerOpenIDConfiguration", _JSON, _ABOUT_CONFIGURATION
        )

    def keys() -> Object:
        from tetrapod.generic.openapi.v3 import text_document

        return text_document(f"{JWKS_PATH}/", "getServiceAccountIssuerOpenIDKeyset", _JWKS, _ABOUT_KEYS)

    return {CONFIGURATION_PATH[1:]: configuration, JWKS_PATH[1:]: keys}


def _document(body: Callable[[], bytes], keys: KeySource, media_type: str) -> Handler:
    async def document(request: Request) -> Response:
        check_route_accept(request, (media_type,))
        caching = f"public, max-age={keys.max_age}".encode()
        headers = [(b"content-type", media_type.encode()), (b"cache-control", caching)]
        return Response(200, headers, body())

    return document
