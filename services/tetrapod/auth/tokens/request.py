"""`TokenRequests`: the logic of the subresource `serviceaccounts/token`, which core serves and auth signs.

In one process core uses `TokenRequestRest`. As a separate process it uses `RemoteTokenRequestRest`
(generic/client/token_requests.py), which calls `prepare` and `issue` here and runs validating admission in between.

Upstream: pkg/registry/core/serviceaccount/storage/token.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tetrapod.auth.tokens.bound_objects import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Objects
from tetrapod.auth.tokens.issuer import EXTENDED_SECONDS, WARN_ONLY_SECONDS, Bound, Signer, TokenIssuer
from tetrapod.auth.tokens.webhook_binding import ATTESTATION, CONFIGURATIONS, GATE, WebhookBinding
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.token_requests import default_token_request, note_credential
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.keys import object_key
from tetrapod.generic.registry.rest import Rest
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupKind, GroupResource, GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.names import is_dns1123_subdomain
from tetrapod.machinery.status import bad_request, conflict, invalid
from tetrapod.machinery.timestamps import format_time, now

_GROUP: Final = "authentication.k8s.io"
_KIND: Final = GroupKind(_GROUP, "TokenRequest")
_SHORTEST: Final = 10 * 60
_LONGEST: Final = 1 << 32
_WEBHOOK_VERSION: Final = "admissionregistration.k8s.io/v1"
_CHECKS_UID: Final = "TokenRequestServiceAccountUIDValidation"
_UID_MISMATCH: Final = "authentication.k8s.io/token-request-uid-mismatch"


class TokenRequests:
    """The two steps of the subresource `serviceaccounts/token`: `prepare`, then `issue`.

    Args:
        issuer: makes the claims of the tokens.
        signer: signs the tokens.
        objects: reads the service account and the bound object.
        audiences: the audiences of this server, used for requests that name none.
        authorizer: authorizes tokens that are bound to webhook configurations.
        max_expiration: --service-account-max-token-expiration in seconds; 0 for no limit.
        extend_expiration: --service-account-extend-token-expiration.
        max_extended: the lifetime of extended tokens in seconds, which `max_expiration` does not limit.
    """

    def __init__(
        self,
        issuer: TokenIssuer,
        signer: Signer,
        objects: Objects,
        audiences: Sequence[str],
        authorizer: Authorizer,
        *,
        max_expiration: int = 0,
        extend_expiration: bool = True,
        max_extended: int = EXTENDED_SECONDS,
    ) -> None:
        self._issuer, self._signer = issuer, signer
        self._objects, self._audiences = objects, tuple(audiences)
        self._max_expiration, self._extend = max_expiration, extend_expiration
        self._max_extended = max_extended
        self._webhooks = WebhookBinding(objects, authorizer, self._audiences)

    async def prepare(self, ctx: Context, name: str, obj: Object) -> None:
        """Set the defaults of a TokenRequest, which is modified, and validate it.

        Args:
            ctx: the request, with the namespace of the service account; it gets a warning and an audit annotation.
            name: the name of the service account.
            obj: the TokenRequest.

        Raises:
            StatusError: the metadata names another object (400, 409, 422), the account does not exist (404), or the
                spec is invalid (422).
        """
        namespace = ctx.namespace
        meta: Object = obj.setdefault("metadata", {}) or {}
        obj["metadata"] = meta
        if meta.get("name") and meta["name"] != name:
            text = "must match the service account name if specified"
            raise invalid(_KIND, name, [field.invalid("metadata.name", meta["name"], text)])
        if meta.get("namespace") and meta["namespace"] != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        account = await self._objects.get(SERVICE_ACCOUNTS, namespace, name)
        uid = account["metadata"]["uid"]
        if meta.get("uid") and meta["uid"] != uid:
            why = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account ({uid})"
            if feature_gates.enabled(_CHECKS_UID):
                raise conflict(GroupResource(_GROUP, "TokenRequest"), name, why)
            ctx.annotations[_UID_MISMATCH] = why
            later = "In the future, this will return a conflict error"
            ctx.warnings.append(f"{why} but {_CHECKS_UID} is not enabled. {later}")
        meta.update(name=name, namespace=namespace, uid=meta.get("uid") or uid, creationTimestamp=format_time(now()))
        default_token_request(obj)
        obj["spec"] = self._defaulted(obj["spec"])
        obj["status"] = {"token": "", "expirationTimestamp": None}
        if errors := validate_token_request(obj["spec"]):
            raise invalid(_KIND, "", errors)

    def _defaulted(self, spec: Object) -> Object:
        spec["audiences"] = spec.get("audiences") or list(self._audiences)
        spec.setdefault("boundObjectRef", None)
        return spec

    async def issue(self, ctx: Context, name: str, obj: Object) -> Object:
        """Sign the token of a TokenRequest that `prepare` has accepted, and return a copy with its status.

        If the lifetime exceeds the maximum, it is shortened in the spec of `obj` too, and a warning is added to `ctx`.

        Args:
            name: the name of the service account.

        Raises:
            StatusError: 404, the account or the bound object does not exist; 400, 403 or 409, the token cannot be bound
                to the object; 500, the plugin cannot sign the token.
        """
        namespace, spec = ctx.namespace, obj["spec"]
        account = await self._objects.get(SERVICE_ACCOUNTS, namespace, name)
        bound = await self._bound(account, spec) if spec["boundObjectRef"] is not None else Bound()
        seconds = int(spec["expirationSeconds"])
        if 0 < self._max_expiration < seconds:
            ctx.warnings.append(
                f"requested expiration of {seconds} seconds shortened to {self._max_expiration} seconds"
            )
            seconds = spec["expirationSeconds"] = self._max_expiration
        lifetime, warn_after = seconds, 0
        ours = set(self._audiences).issuperset(spec["audiences"])
        if self._extend and bound.pod is not None and seconds == WARN_ONLY_SECONDS and ours:
            lifetime, warn_after = self._max_extended, seconds
        moment = now()  # taken before signing, so that the reported expiry is never later than the token's
        claims = self._issuer.bound_claims(account, lifetime, spec["audiences"], bound, warn_after)
        token = await self._signer.sign(claims)
        expires = format_time(moment.fromtimestamp(moment.timestamp() + seconds, moment.tzinfo))
        return {**obj, "status": {"token": token, "expirationTimestamp": expires}}

    async def _bound(self, account: Object, spec: Object) -> Bound:
        """Return the object that a token of the account is to be bound to; `spec` is that of the TokenRequest.

        Raises:
            StatusError: 400, 403, 404 or 409, the token cannot be bound to the object.
        """
        ref = spec["boundObjectRef"]
        kind, name = _kind_of(ref), ref.get("name", "")
        if kind.group == "" and kind.kind in ("Pod", "Secret", "Node"):
            meta = account["metadata"]
            object_key(kind.kind != "Node", meta["namespace"], name)  # rejects names that no path can have
            bound, uid = await self._find(meta["namespace"], meta["name"], kind.kind, name)
        elif _is_webhook(ref) and feature_gates.enabled(GATE):
            configuration = await self._webhooks.configuration(account, kind.kind, name, spec)
            bound = Bound(webhooks=configuration, attestations=spec["attestations"])
            uid = configuration["metadata"]["uid"]
        else:
            gate = f" (feature gate {GATE} is disabled)" if _is_webhook(ref) else ""
            raise bad_request(f"cannot bind token to object of type {kind}{gate}")
        if ref.get("uid") and ref["uid"] != uid:
            message = (
                f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise conflict(GroupResource(kind.group, kind.kind), name, message)
        return bound

    async def _find(self, namespace: str, account: str, kind: str, name: str) -> tuple[Bound, str]:
        """Read the object that a token is to be bound to, and return it in a `Bound`, with its uid.

        Args:
            namespace: the namespace of the service account.
            account: the name of the service account.
            kind: "Pod", "Secret" or "Node".
            name: the name of the object.

        Returns:
            The bound objects (a pod with its node), and the uid of the object with this kind and name.

        Raises:
            StatusError: 404 if it does not exist; 400 if the pod has another service account.
        """
        if kind == "Secret":
            secret = await self._objects.get(SECRETS, namespace, name)
            return Bound(secret=secret), secret["metadata"]["uid"]
        if kind == "Node":
            node = await self._objects.get(NODES, "", name)
            return Bound(node={"name": name, "uid": node["metadata"]["uid"]}), node["metadata"]["uid"]
        pod = await self._objects.get(PODS, namespace, name)
        if pod["spec"].get("serviceAccountName") != account:
            raise bad_request(
                f"cannot bind token for serviceaccount {go_quote(account)} to pod running with different "
                "serviceaccount name."
            )
        return Bound(pod=pod, node=await self._node_of(pod)), pod["metadata"]["uid"]

    async def _node_of(self, pod: Object) -> dict[str, str] | None:
        """Return the name and uid of the pod's node, or None if the pod is not scheduled.

        The uid is "" if the Node does not exist.
        """
        name = pod["spec"].get("nodeName")
        if not name:
            return None
        node = await self._objects.find(NODES, "", name)
        return {"name": name, "uid": node["metadata"]["uid"] if node is not None else ""}


class TokenRequestRest(Rest):
    """The subresource `serviceaccounts/token` for the case that core and auth run in one process."""

    keeps_system_metadata = True  # a request may name the account's uid as a precondition

    def __init__(self, requests: TokenRequests) -> None:
        self._requests = requests

    def default(self, obj: Object) -> None:
        default_token_request(obj)

    async def create(self, ctx: Context, name: str, obj: Object, validate: Any, options: Object) -> Object:
        await self._requests.prepare(ctx, name, obj)
        if validate is not None:
            await validate(obj)
        return note_credential(ctx, await self._requests.issue(ctx, name, obj))


def validate_token_request(spec: Object) -> list[FieldError]:
    """Validate the spec of a TokenRequest whose defaults are set.

    expirationSeconds is from 10 minutes to 2^32 seconds. If the token is bound to a webhook configuration, there is
    exactly one audience, and attestations are validated; otherwise attestations must be unset.

    Upstream: pkg/apis/authentication/validation/validation.go, ValidateTokenRequest.
    """
    errors: list[FieldError] = []
    seconds = spec["expirationSeconds"]
    if seconds < _SHORTEST:
        errors.append(
            field.invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        )
    if seconds > _LONGEST:
        errors.append(
            field.invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        )
    declared = spec.get("attestations")
    attestations = None if declared is None else dict(sorted(declared.items()))  # errors quote the keys in order
    if _is_webhook(spec.get("boundObjectRef")):
        if len(spec["audiences"]) != 1:
            errors.append(
                field.invalid("spec.audiences", spec["audiences"], "must be length 1 when bound to a webhook config")
            )
        return errors + _attestation_errors(attestations)
    if attestations:
        text = "attestations may only be specified with a webhook bound object reference"
        return [field.invalid("spec.attestations", attestations, text)]
    return errors


def _attestation_errors(attestations: dict[str, list[str]] | None) -> list[FieldError]:
    path = "spec.attestations"
    if attestations is None or len(attestations) != 1:
        text = f"webhook bound requests require exactly one {ATTESTATION} attestation"
        return [field.invalid(path, attestations, text)]
    ((key, groups),) = attestations.items()
    path = field.key(path, key)
    if key != ATTESTATION:
        return [field.not_supported(path, key, [ATTESTATION])]
    if len(groups) != 1:
        return [field.invalid(path, groups, "must specify a single value")]
    path = f"{path}[0]"
    if not groups[0]:
        return [field.invalid(path, "", "may not be an empty string")]
    problems = [] if groups[0] == "*" else is_dns1123_subdomain(groups[0])
    return [field.invalid(path, groups[0], f"must specify a valid API Group: {problem}") for problem in problems]


def _is_webhook(ref: Object | None) -> bool:
    return ref is not None and ref.get("kind") in CONFIGURATIONS and ref.get("apiVersion") == _WEBHOOK_VERSION


def _kind_of(ref: Object) -> GroupVersionKind:
    """Return the kind that an object reference names.

    An apiVersion that cannot be parsed is treated as empty.

    Upstream: schema.FromAPIVersionAndKind.
    """
    try:
        return GroupVersion.parse(ref.get("apiVersion") or "").with_kind(ref.get("kind") or "")
    except ValueError:
        return GroupVersionKind("", "", ref.get("kind") or "")
