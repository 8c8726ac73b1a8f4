"""Authentication and authorization delegated to the Kubernetes API, as in every aggregated API server.

The trust configuration (the front proxy's CA and headers, the client CA) is published in the ConfigMap
kube-system/extension-apiserver-authentication.
Upstream: staging/src/k8s.io/apiserver/pkg/server/options, DelegatingAuthenticationOptions,
DelegatingAuthorizationOptions
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Final, NamedTuple

from tetrapod.generic.authentication.bearer import BearerAuthenticator
from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.authentication.delegating import TokenReviewer
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authentication.requestheader import STANDARD, HeaderNames, RequestHeaderAuthenticator
from tetrapod.generic.authentication.tokencache import CachedTokenAuthenticator
from tetrapod.generic.authentication.union import UnionAuthenticator
from tetrapod.generic.authentication.x509 import X509Authenticator
from tetrapod.generic.authorization.delegating import SubjectAccessReviewer
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.authorization.union import HealthPaths, Named, PrivilegedGroup, UnionAuthorizer
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import GroupVersionResource
from tetrapod.machinery.status import StatusError

log = logging.getLogger(__name__)

CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")
REVIEW_SECONDS: Final = 10.0
_HEADER_NAMES: Final = (
    "requestheader-username-headers",
    "requestheader-uid-headers",
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
)
"""In the order of the fields of HeaderNames."""


class Trust(NamedTuple):
    """The CAs and header names that the cluster publishes in the ConfigMap `extension-apiserver-authentication`.

    Attributes:
        client_ca: the CA of client certificates in PEM; "" for none.
        front_proxy_ca: the CA of front proxies in PEM; "" for none.
        front_proxy_names: the common names that front proxies may have; empty allows any.
        header_names: the names of the identity headers.
    """

    client_ca: str
    front_proxy_ca: str
    front_proxy_names: tuple[str, ...]
    header_names: HeaderNames = STANDARD


async def read_trust(client: Client) -> Trust:
    """Return the content of the ConfigMap `kube-system/extension-apiserver-authentication`.

    While it cannot be read, log the reason and retry every second, without end.
    """
    while True:
        try:
            config_map = await client.get(CONFIG_MAPS, "kube-system", "extension-apiserver-authentication")
        except (StatusError, Unavailable, OSError) as error:
            log.info("the trust configuration cannot be read yet: %s", error)
            await asyncio.sleep(1)
            continue
        data = config_map["data"]
        names = json.loads(data.get("requestheader-allowed-names", "[]"))
        headers = HeaderNames(*(tuple(json.loads(data.get(key, "[]"))) for key in _HEADER_NAMES))
        return Trust(
            data.get("client-ca-file", ""), data.get("requestheader-client-ca-file", ""), tuple(names), headers
        )


def authenticator(trust: Trust, client: Client) -> RequestAuthenticator:
    """Return an authenticator for requests through the aggregator and for direct requests.

    Requests through the aggregator carry identity headers. Direct requests are authenticated by client certificate, or
    by bearer token (TokenReview, cached for 10 seconds). Requests without credentials are anonymous.

    Args:
        trust: the CAs of clients and of the aggregator, and the names of its headers.
        client: the client of the cluster, which creates the TokenReviews.
    """
    return UnionAuthenticator(
        [
            RequestHeaderAuthenticator(
                CertificatePool(trust.front_proxy_ca.encode()), trust.front_proxy_names, trust.header_names
            ),
            X509Authenticator(CertificatePool(trust.client_ca.encode())),
            BearerAuthenticator(CachedTokenAuthenticator(TokenReviewer(client))),
        ]
    )


def authorizer(client: Client, review_seconds: float = REVIEW_SECONDS) -> Authorizer:
    """Return an authorizer that creates a SubjectAccessReview in the cluster for each request.

    Health checks, and all requests of system:masters, are allowed without a review.

    Args:
        client: the client of the cluster, which creates the SubjectAccessReviews.
        review_seconds: how long each decision is cached; 0 for not at all.
    """
    reviews = SubjectAccessReviewer(client, allowed_seconds=review_seconds, denied_seconds=review_seconds)
    return UnionAuthorizer([Named("", HealthPaths()), Named("", PrivilegedGroup()), Named("", reviews)])
