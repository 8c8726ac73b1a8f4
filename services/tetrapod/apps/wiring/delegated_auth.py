"""Authentication and authorization of a process other than auth, in separate processes.

The identity headers of the aggregator and client certificates are verified here; the auth service reviews tokens and
resolves RBAC rules.
"""

from __future__ import annotations

from typing import Final

from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.authentication import anonymous_access
from tetrapod.apps.wiring.authentication_trust import header_names
from tetrapod.generic.authentication.bearer import BearerAuthenticator, WebSocketAuthenticator
from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.authentication.delegating import TokenReviewer
from tetrapod.generic.authentication.interface import RequestAuthenticator
from tetrapod.generic.authentication.requestheader import RequestHeaderAuthenticator
from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authentication.sharedtokens import SharedTokens
from tetrapod.generic.authentication.tokencache import SUCCESS_SECONDS, CachedTokenAuthenticator
from tetrapod.generic.authentication.union import UnionAuthenticator
from tetrapod.generic.authentication.x509 import X509Authenticator
from tetrapod.generic.authorization.delegating import DelegatingAuthorizer, RuleSetCache, SubjectAccessReviewer
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.authorization.union import HealthPaths, Named, UnionAuthorizer
from tetrapod.generic.client.rest import RestClient
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.storage.interface import StorageFactory

_PROBED: Final = frozenset({"get"})
"""The verbs that anonymous users are allowed on health paths before the RBAC rules have been read; RBAC allows them
too.
"""


def delegated_authenticator(
    options: Options,
    auth: RestClient,
    shared: SharedCache | None,
    clients: CertificatePool,
    proxies: CertificatePool,
    *,
    behind_aggregator: bool,
) -> RequestAuthenticator:
    """Return an authenticator of identity headers, client certificates and bearer tokens.

    Args:
        options: the options.
        auth: a client of the auth service, which reviews tokens.
        shared: the cache of token reviews that replicas share; None for none.
        clients: the CAs of client certificates.
        proxies: the CAs of front proxies.
        behind_aggregator: whether the only front proxy is the aggregator.
    """
    reviews = SharedTokens(shared, "auth", SUCCESS_SECONDS) if shared is not None else None
    tokens = CachedTokenAuthenticator(TokenReviewer(auth), shared=reviews)
    access = anonymous_access(options)
    request_header = options.authentication.request_header
    audiences = options.authentication.api_audiences
    return UnionAuthenticator(
        [
            RequestHeaderAuthenticator(
                proxies,
                request_header.allowed_names,
                header_names(request_header, of_peers=behind_aggregator),
                behind_aggregator=behind_aggregator,
            ),
            X509Authenticator(clients),
            BearerAuthenticator(tokens, audiences),
            WebSocketAuthenticator(tokens, audiences),
        ],
        anonymous=access.allowed,
        anonymous_paths=access.paths,
    )


def delegated_authorizer(auth: RestClient, storage: StorageFactory, lifecycle: Lifecycle) -> Authorizer:
    """Return an authorizer that evaluates RBAC rules, which the auth service resolves.

    For requests that these rules do not allow, it sends SubjectAccessReviews to the auth service. It registers a
    post-start hook that watches RBAC objects in storage.
    """
    rules = RuleSetCache(auth, storage)

    async def follow_rules() -> None:
        lifecycle.background("rule-sets", rules.run())

    lifecycle.on_start("start-authorization-informers", follow_rules)
    return UnionAuthorizer(
        [Named("", HealthPaths(_PROBED)), Named("", DelegatingAuthorizer(rules, SubjectAccessReviewer(auth)))]
    )
