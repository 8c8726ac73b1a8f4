"""AuthorizationConfiguration files, and the conversion of flags such as --authorization-mode to such a configuration.

Upstream: k8s.io/apiserver/pkg/apis/apiserver/{load,v1,v1beta1,v1alpha1}, pkg/kubeapiserver/options/authorization.go
(buildAuthorizationConfiguration), pkg/kubeapiserver/authorizer/config.go (LoadAndValidateData).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from tetrapod.generic.configuration import schemas
from tetrapod.generic.configuration.loading import Kinds, load
from tetrapod.generic.configuration.schemas import POINTER, boolean, duration, kind, list_of, string, struct
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.schema_node import SchemaNode

KIND: Final = "AuthorizationConfiguration"
GROUP: Final = "apiserver.config.k8s.io"
VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
MODES: Final = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")


@dataclass(frozen=True, slots=True)
class AuthorizationOptions:
    """The options of `AuthorizerChain`.

    Attributes:
        config: the AuthorizationConfiguration, read from `file` or made from the flags.
        file: the path of the configuration file; "" if the flags are used.
        data: the content of the file, to detect changes.
        policy_file: the path of --authorization-policy-file, for the authorizer ABAC; "" if it is not used.
    """

    config: Object = field(default_factory=lambda: from_modes(("Node", "RBAC")))
    file: str = ""
    data: str = ""
    policy_file: str = ""


@dataclass(frozen=True, slots=True)
class WebhookFlags:
    """The values of the --authorization-webhook-* flags.

    Attributes:
        config_file: the path of the webhook's kubeconfig.
        version: the version of the SubjectAccessReviews to send.
        authorized_ttl: how long to cache decisions that allow a request, as Go writes durations ("5m").
        unauthorized_ttl: how long to cache decisions that deny a request, in the same form.
    """

    config_file: str = ""
    version: str = "v1beta1"
    authorized_ttl: str = "5m"
    unauthorized_ttl: str = "30s"


def load_configuration(data: bytes) -> Object:
    """Decode an AuthorizationConfiguration file and set its defaults. An empty file gives {}. `validate` checks values.

    Raises:
        ValueError: the file cannot be decoded; the text is upstream's.
    """
    if not data:
        return {}
    try:
        obj = load(data, _kinds())
    except ValueError as error:
        raise ValueError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    if obj["kind"] != KIND:
        raise ValueError(
            f"failed to load AuthorizationConfiguration from file: expected {KIND}, got *apiserver.{obj['kind']}"
        )
    for authorizer in obj.get("authorizers") or []:
        if (webhook := authorizer.get("webhook")) is not None:
            for name, value in _DEFAULTS.items():
                webhook.setdefault(name, value)
    return obj


_DEFAULTS: Final[Object] = {
    "authorizedTTL": "5m0s",
    "cacheAuthorizedRequests": True,
    "unauthorizedTTL": "30s",
    "cacheUnauthorizedRequests": True,
}


def from_modes(modes: Sequence[str], webhook: WebhookFlags | None = None) -> Object:
    """Return the AuthorizationConfiguration for --authorization-mode and the webhook flags."""
    return {"authorizers": [_authorizer(mode, webhook or WebhookFlags()) for mode in modes]}


def _authorizer(mode: str, flags: WebhookFlags) -> Object:
    if mode != "Webhook":
        return {"type": mode, "name": mode.lower()}
    webhook = {
        "authorizedTTL": flags.authorized_ttl,
        "cacheAuthorizedRequests": True,
        "unauthorizedTTL": flags.unauthorized_ttl,
        "cacheUnauthorizedRequests": True,
        "timeout": "30s",
        "failurePolicy": "NoOpinion",
        "subjectAccessReviewVersion": flags.version,
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": flags.config_file},
    }
    return {"type": "Webhook", "name": "default", "webhook": webhook}


def name_errors(config: Object, required: Collection[str] = ()) -> list[str]:
    """Return upstream's errors about names and missing types of authorizers, which `validate` does not check.

    The name of an authorizer other than a webhook must be its type in lower case, such as `rbac` for `RBAC`.

    Args:
        config: the AuthorizationConfiguration, with its defaults.
        required: types that the configuration must contain, because a reload may not remove them.
    """
    errors, seen = [], set()
    for authorizer in config.get("authorizers") or []:
        kind_, name = authorizer["type"], authorizer["name"]
        if kind_ == "Webhook":
            continue
        seen.add(kind_)
        if name != kind_.lower():
            errors.append(f"expected name {kind_.lower()} for authorizer {kind_} instead of {name}")
    if missing := sorted(set(required) - seen):
        errors.append(f"missing required types: [{' '.join(missing)}]")
    return errors


def _kinds() -> Kinds:
    kinds: dict[tuple[str, str], SchemaNode] = {}
    for version in VERSIONS:
        kinds[f"{GROUP}/{version}", KIND] = _shape(version)
        kinds[f"{GROUP}/{version}", "AuthenticationConfiguration"] = kind(
            "AuthenticationConfiguration", jwt=schemas.raw(), anonymous=schemas.raw()
        )
    return kinds


def _shape(version: str) -> SchemaNode:
    connection = struct(f"{version}.WebhookConnectionInfo", type=string(), kubeConfigFile=string(POINTER))
    webhook = struct(
        f"{version}.WebhookConfiguration",
        authorizedTTL=duration(),
        cacheAuthorizedRequests=boolean(POINTER),
        unauthorizedTTL=duration(),
        cacheUnauthorizedRequests=boolean(POINTER),
        timeout=duration(),
        subjectAccessReviewVersion=string(),
        matchConditionSubjectAccessReviewVersion=string(),
        failurePolicy=string(),
        connectionInfo=connection,
        matchConditions=list_of(struct(f"{version}.WebhookMatchCondition", expression=string())),
    )
    return kind(
        KIND,
        authorizers=list_of(
            struct(f"{version}.AuthorizerConfiguration", type=string(), name=string(), webhook=webhook)
        ),
    )
