"""`AuthService`: the authenticators, authorizers, resources, routes and hooks of the auth service.

The package `apps` creates it: in a process of its own, or in the single process, where it passes `authenticator`,
`authorizer` and `token_request_rest` to the other services.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from tetrapod.auth.authorizers.chain import AuthorizerChain, ResolvingAuthorizer
from tetrapod.auth.authorizers.configuration import AuthorizationOptions
from tetrapod.auth.internal_api import InternalAuthorizer, internal_routes
from tetrapod.auth.node.authorizer import NodeAuthorizer
from tetrapod.auth.node.graph import NodeGraph
from tetrapod.auth.oidc.configuration import JwtOptions
from tetrapod.auth.rbac.aggregation import AggregationController
from tetrapod.auth.rbac.bootstrap import reconcile_bootstrap_policy
from tetrapod.auth.rbac.escalation import EscalationGuard
from tetrapod.auth.rbac.index import RbacAuthorizer, RbacIndex
from tetrapod.auth.resources import auth_resources
from tetrapod.auth.tokens.bootstrap import BootstrapTokenAuthenticator
from tetrapod.auth.tokens.bound_objects import SERVICE_ACCOUNTS, Objects
from tetrapod.auth.tokens.issuer import EXTENDED_SECONDS, KeySigner, Signer, TokenIssuer, legacy_claims
from tetrapod.auth.tokens.jwts import JwtVerifier
from tetrapod.auth.tokens.keys import KeySource, PrivateKey, StaticKeys, VerificationKey, distinct, verification_key
from tetrapod.auth.tokens.oidc import discovery_routes, openapi_documents
from tetrapod.auth.tokens.request import TokenRequestRest, TokenRequests
from tetrapod.auth.tokens.serviceaccounts import BoundTokenAuthenticator, LegacyTokenAuthenticator
from tetrapod.auth.tokens.static import StaticTokenAuthenticator
from tetrapod.auth.tokens.tracking import LegacyTokenTracker
from tetrapod.generic.authentication.bearer import BearerAuthenticator, WebSocketAuthenticator
from tetrapod.generic.authentication.certificates import CertificatePool
from tetrapod.generic.authentication.interface import AlternativeAuthenticator, RequestAuthenticator, TokenAuthenticator
from tetrapod.generic.authentication.requestheader import STANDARD, HeaderNames, RequestHeaderAuthenticator
from tetrapod.generic.authentication.shared_cache import SharedCache
from tetrapod.generic.authentication.union import UnionAuthenticator, UnionTokenAuthenticator
from tetrapod.generic.authentication.webhook import webhook_authenticator
from tetrapod.generic.authentication.x509 import X509Authenticator
from tetrapod.generic.authorization.interface import RuleResolver
from tetrapod.generic.authorization.union import Named
from tetrapod.generic.client.interface import Client
from tetrapod.generic.client.leaderelection.leadership import ALONE, Leadership, lead
from tetrapod.generic.egress.selector import CONTROL_PLANE, ETCD, NO_EGRESS, EgressSelector
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.server.controllers import enabled
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.kubeconfig import Target
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import SERVICES_GROUP, UserInfo

if TYPE_CHECKING:
    from tetrapod.auth.oidc.authenticators import JwtAuthenticators
    from tetrapod.auth.tokens.external.signer import ExternalSigner

BOOTSTRAP_HOOK: Final = "rbac/bootstrap-roles"
SecretSigner = Callable[[str, str, str], Awaitable[str]]
"""Called with namespace, service account name and secret name; returns a legacy token, "" if none is signed."""


@dataclass(frozen=True, slots=True)
class TokenWebhook:
    """The webhook that is asked about tokens which no other authenticator accepts.

    Attributes:
        target: the webhook, as its kubeconfig names it.
        version: --authentication-token-webhook-version: the version of TokenReview.
        ttl: --authentication-token-webhook-cache-ttl in seconds.
    """

    target: Target
    version: str = "v1beta1"
    ttl: float = 120.0


@dataclass(frozen=True, slots=True)
class AuthOptions:
    """The options of `AuthService`, from flags of kube-apiserver. Files that they name have been read.

    Attributes:
        issuers: --service-account-issuer; new tokens have the first one.
        audiences: --api-audiences; if it is empty, the first issuer is used.
        signing_key: --service-account-signing-key-file; None if this server has none.
        external_signer: the plugin of --service-account-signing-endpoint, or None.
        verification_keys: --service-account-key-file.
        jwks_uri: --service-account-jwks-uri, or a URI at the external address; "" disables OIDC discovery.
        max_token_expiration: --service-account-max-token-expiration in seconds; 0 for no limit.
        extend_token_expiration: --service-account-extend-token-expiration.
        max_extended_expiration: the lifetime of extended tokens in seconds.
        static_tokens: the users of --token-auth-file by token.
        bootstrap_tokens: --enable-bootstrap-token-auth.
        client_authorities: --client-ca-file; None disables client certificates.
        proxy_authorities: --requestheader-client-ca-file; None disables front proxies.
        requestheader_allowed_names: --requestheader-allowed-names; empty for any name.
        requestheader_names: --requestheader-username-headers and the related flags.
        token_webhook: --authentication-token-webhook-config-file and the related flags; None for no webhook.
        jwt: --authentication-config or --oidc-*; None for no external issuers.
        anonymous: --anonymous-auth, or `anonymous.enabled` of --authentication-config.
        anonymous_paths: the only paths that accept anonymous requests; empty for all.
        authorization: --authorization-mode and the other flags of authorizers.
        controllers: --controllers.
        reserved_groups: groups that a client certificate cannot grant. In the single process, where users connect
            directly, this is SERVICES_GROUP.
        shared: the cache of --redis-url that replicas share, or None.
        services_apart: whether aggregator, core, extensions and auth run as separate processes. The bootstrap policy
            then grants each of them its permissions.
        egress: the egress selector, for webhooks and for issuers with `egressSelectorType`.
    """

    issuers: Sequence[str] = ("https://kubernetes.default.svc",)
    audiences: Sequence[str] = ()
    signing_key: PrivateKey | None = None
    external_signer: ExternalSigner | None = None
    verification_keys: Sequence[VerificationKey] = ()
    jwks_uri: str = ""
    max_token_expiration: int = 0
    extend_token_expiration: bool = True
    max_extended_expiration: int = EXTENDED_SECONDS
    static_tokens: dict[str, UserInfo] = field(default_factory=dict)
    bootstrap_tokens: bool = False
    client_authorities: CertificatePool | None = None
    proxy_authorities: CertificatePool | None = None
    requestheader_allowed_names: Sequence[str] = ()
    requestheader_names: HeaderNames = STANDARD
    token_webhook: TokenWebhook | None = None
    jwt: JwtOptions | None = None
    anonymous: bool = True
    anonymous_paths: Sequence[str] = ()
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    controllers: Sequence[str] = ("*",)
    reserved_groups: Sequence[str] = ()
    shared: SharedCache | None = None
    services_apart: bool = False
    egress: EgressSelector = NO_EGRESS


class AuthService:
    """The assembled auth service: its authenticators, authorizers and resources.

    Attributes:
        authenticator: authenticates requests.
        tokens: authenticates bearer tokens.
        authorizer: the configured chain of authorizers.
        resolver: lists the rules of a user, for SelfSubjectRulesReviews.
        definitions: the resources to serve.
    """

    def __init__(
        self,
        storage: StorageFactory,
        options: AuthOptions,
        client: Client | None = None,
        leadership: Leadership = ALONE,
    ) -> None:
        """Create the authenticators, authorizers and resources; nothing runs until the hooks of `register` do.

        Args:
            storage: the storage of RBAC objects, Secrets, service accounts, pods and nodes.
            options: the options.
            client: a client of the aggregator, for the aggregation controller and the tracking of legacy tokens; None
                disables both.
            leadership: decides which replica runs the aggregation controller.

        Raises:
            ValueError: the options are invalid; the text is upstream's.
        """
        self._storage, self._options, self._client, self._leadership = storage, options, client, leadership
        self._following = False
        self._pool = BackendPool()
        self._egress_pools: dict[str, BackendPool] | None = None
        if options.egress.dialers is not None:
            self._egress_pools = {
                name: BackendPool(dialer=dialer) for name, dialer in options.egress.dialers.items() if name != ETCD
            }
        self._webhook_pool = (self._egress_pools or {}).get(CONTROL_PLANE, self._pool)
        self.audiences = tuple(options.audiences) or tuple(options.issuers[:1])
        self.objects = Objects(storage)
        self.index = RbacIndex(storage)
        self.graph = NodeGraph(storage)
        self._make_authorizers()
        self._make_issuer()
        self._make_authenticators()
        self.definitions = auth_resources(
            tokens=self.tokens,
            audiences=self.audiences,
            anonymous=options.anonymous
            and not options.anonymous_paths,  # a TokenReview has no path to compare with anonymous_paths
            authorizer=self.authorizer,
            resolver=self.resolver,
            guard=EscalationGuard(self.authorizer, self.index, storage),
        )
        self.rest_routes = discovery_routes(options.issuers[0], self._keys, options.jwks_uri) if self._keys.keys else {}
        """The handlers of OIDC discovery, for `Routes.add_rest`."""
        self.documents = openapi_documents() if self.rest_routes else {}
        """The OpenAPI documents of OIDC discovery, for `GenericAPIServer.documents`."""
        self.routes = internal_routes(self.index, self._chain, self._requests, self.sign_secret_token)
        """The internal API for the other services when they are separate processes, for `Routes.add`. The aggregator
        never proxies it.
        """

    def _make_authorizers(self) -> None:
        built_in: dict[str, ResolvingAuthorizer] = {
            "Node": NodeAuthorizer(self.graph),
            "RBAC": RbacAuthorizer(self.index),
        }
        options, preceding = self._options, [Named("", InternalAuthorizer())]
        self._chain = AuthorizerChain(options.authorization, preceding, built_in, self._webhook_pool, options.shared)
        self.authorizer = self._chain.authorizer
        self.resolver: RuleResolver = self._chain.resolver

    def _make_issuer(self) -> None:
        options = self._options
        self._key_signer = KeySigner(options.signing_key) if options.signing_key is not None else None
        signer: Signer | None = options.external_signer or self._key_signer
        self._requests: TokenRequests | None = None
        if signer is not None:
            self._requests = TokenRequests(
                TokenIssuer(options.issuers[0]),
                signer,
                self.objects,
                self.audiences,
                self.authorizer,
                max_expiration=options.max_token_expiration,
                extend_expiration=options.extend_token_expiration,
                max_extended=options.max_extended_expiration,
            )
        self.token_request_rest = TokenRequestRest(self._requests) if self._requests is not None else None
        """`serviceaccounts/token`, for core in the same process; None if no tokens are signed."""

    def _make_keys(self) -> KeySource:
        options = self._options
        if options.external_signer is not None:
            return options.external_signer.keys
        own = [verification_key(options.signing_key.public_key())] if options.signing_key is not None else []
        return StaticKeys(distinct([*(own if not options.verification_keys else ()), *options.verification_keys]))

    def _make_authenticators(self) -> None:
        options = self._options
        self._keys = self._make_keys()
        tokens: list[TokenAuthenticator] = []
        self._tracker: LegacyTokenTracker | None = None
        if options.static_tokens:
            tokens.append(StaticTokenAuthenticator(options.static_tokens, self.audiences))
        if self._keys.keys:
            verifier = JwtVerifier(self._keys)
            self._tracker = LegacyTokenTracker(self._client) if self._client is not None else None
            used = self._tracker.used if self._tracker is not None else None
            tokens.append(LegacyTokenAuthenticator(verifier, self.objects, self.audiences, used))
            tokens.append(BoundTokenAuthenticator(verifier, self.objects, options.issuers, self.audiences))
        if options.bootstrap_tokens:
            tokens.append(BootstrapTokenAuthenticator(self.objects, self.audiences))
        self._jwt: JwtAuthenticators | None = None
        if options.jwt is not None:
            # only imported on demand, because it imports CEL
            from tetrapod.auth.oidc.authenticators import JwtAuthenticators

            # After the service account authenticators, so that their tokens do not make an issuer's keys be fetched.
            self._jwt = JwtAuthenticators(
                replace(options.jwt, audiences=self.audiences, disallowed=options.issuers),
                self._pool,
                egress=self._egress_pools,
            )
            tokens.append(self._jwt)
        if (webhook := options.token_webhook) is not None:  # last, because it sends a request
            webhook_tokens = webhook_authenticator(
                webhook.target,
                self._webhook_pool,
                version=webhook.version,
                ttl=webhook.ttl,
                audiences=self.audiences,
                shared=options.shared,
            )
            tokens.append(webhook_tokens)
        self.tokens: TokenAuthenticator = UnionTokenAuthenticator(tokens)
        self.authenticator: RequestAuthenticator = UnionAuthenticator(
            self._request_authenticators(), anonymous=options.anonymous, anonymous_paths=options.anonymous_paths
        )

    def _request_authenticators(self) -> list[AlternativeAuthenticator]:
        options = self._options
        authenticators: list[AlternativeAuthenticator] = []
        if options.proxy_authorities is not None:
            authenticators.append(
                RequestHeaderAuthenticator(
                    options.proxy_authorities,
                    options.requestheader_allowed_names,
                    options.requestheader_names,
                    behind_aggregator=options.services_apart,
                )
            )
        if options.client_authorities is not None:
            authenticators.append(
                X509Authenticator(options.client_authorities, reserved_groups=options.reserved_groups)
            )
        return [
            *authenticators,
            BearerAuthenticator(self.tokens, self.audiences),
            WebSocketAuthenticator(self.tokens, self.audiences),
        ]

    async def sign_secret_token(self, namespace: str, account: str, secret: str) -> str:
        """Return a token for a Secret of type kubernetes.io/service-account-token.

        This method is a `SecretSigner` for core's controller. The token is "" without a signing key, because plugins
        sign no such tokens.

        Raises:
            StatusError: 404, the service account does not exist.
        """
        if self._key_signer is None:
            return ""
        service_account: Object = await self.objects.get(SERVICE_ACCOUNTS, namespace, account)
        return self._key_signer.signed(legacy_claims(service_account, secret))

    def register(self, lifecycle: Lifecycle) -> None:
        """Register the post-start and shutdown hooks.

        The server is ready only after the bootstrap policy is stored and loaded into the RBAC index.
        """

        async def bootstrap_roles() -> None:
            if not self._following:
                self._following = True
                lifecycle.background("rbac-index", self.index.run())
                self._chain.start(lifecycle)
                if self._jwt is not None:
                    self._jwt.start(lifecycle)
                if self._options.external_signer is not None:
                    self._options.external_signer.start(lifecycle)
            revisions = await reconcile_bootstrap_policy(self._storage, services_apart=self._options.services_apart)
            await self.index.synced()
            await self.index.reach(revisions)
            self.index.has_policy.set()
            if self._client is not None and enabled(AggregationController.name, self._options.controllers):
                client = self._client
                lead("auth", self._leadership, lambda: [AggregationController(client)], lifecycle)

        if (tracker := self._tracker) is not None:

            async def track() -> None:
                lifecycle.background("legacy-token-tracking", tracker.start())

            lifecycle.on_start("start-legacy-token-tracking-controller", track)
        lifecycle.on_start(BOOTSTRAP_HOOK, bootstrap_roles)
        lifecycle.on_shutdown("node-graph", self.graph.close)
        if self._jwt is not None:
            lifecycle.on_shutdown("jwt-authenticators", self._jwt.close)
        if self._options.external_signer is not None:
            lifecycle.on_shutdown("external-jwt-signer", self._options.external_signer.close)
        lifecycle.on_shutdown("auth-connections", self._close_connections)

    async def _close_connections(self) -> None:
        for pool in (self._pool, *(self._egress_pools or {}).values()):
            await pool.close()


__all__ = ["SERVICES_GROUP", "AuthOptions", "AuthService", "SecretSigner", "TokenWebhook"]
