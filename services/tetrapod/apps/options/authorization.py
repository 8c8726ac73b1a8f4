"""The flags of authorization. Upstream: pkg/kubeapiserver/options/authorization.go."""

from __future__ import annotations

from dataclasses import dataclass

from tetrapod.apps.options.flag import flag


@dataclass(frozen=True, slots=True)
class AuthorizationFlags:
    """The flags of the authorizers."""

    mode: tuple[str, ...] = flag(
        "authorization-mode",
        ("Node", "RBAC"),
        "Ordered list of plug-ins to do authorization on secure port. Comma-delimited list of: "
        "AlwaysAllow,AlwaysDeny,ABAC,Webhook,RBAC,Node.",
    )
    config: str = flag(
        "authorization-config",
        "",
        "File with Authorization Configuration to configure the authorizer chain. This flag is mutually exclusive with "
        "the other --authorization-mode and --authorization-webhook-* flags.",
    )
    policy_file: str = flag(
        "authorization-policy-file",
        "",
        "File with authorization policy in json line by line format, used with --authorization-mode=ABAC, on the "
        "secure port.",
    )
    webhook_config_file: str = flag(
        "authorization-webhook-config-file",
        "",
        "File with webhook configuration in kubeconfig format, used with --authorization-mode=Webhook. The API server "
        "will query the remote service to determine access on the API server's secure port.",
    )
    webhook_version: str = flag(
        "authorization-webhook-version",
        "v1beta1",
        "The API version of the authorization.k8s.io SubjectAccessReview to send to and expect from the webhook.",
    )
    webhook_cache_authorized_ttl: float = flag(
        "authorization-webhook-cache-authorized-ttl",
        300.0,
        "The duration to cache 'authorized' responses from the webhook authorizer.",
    )
    webhook_cache_unauthorized_ttl: float = flag(
        "authorization-webhook-cache-unauthorized-ttl",
        30.0,
        "The duration to cache 'unauthorized' responses from the webhook authorizer.",
    )
