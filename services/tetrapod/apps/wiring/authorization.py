"""The authorizers, by --authorization-config or by --authorization-mode and its companions.

Upstream: BuiltInAuthorizationOptions of pkg/kubeapiserver/options/authorization.go (Validate, ToAuthorizationConfig).
"""

from __future__ import annotations

from typing import Final

from tetrapod.apps.options.options import Options
from tetrapod.auth.authorizers.chain import checked
from tetrapod.auth.authorizers.configuration import MODES, AuthorizationOptions, WebhookFlags, from_modes
from tetrapod.generic.configuration.files import read
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.golang.quoting import go_quote

_EXCLUDED: Final = frozenset(
    {
        "authorization-mode",
        "authorization-webhook-config-file",
        "authorization-webhook-version",
        "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    }
)


def authorization_options(options: Options) -> AuthorizationOptions:
    """Return the authorizers that flags or the configuration file select.

    Raises:
        ValueError: with upstream's text.
    """
    if options.authorization.config:
        if options.given & _EXCLUDED:
            text = "can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
            raise ValueError(f"--authorization-config {text}")
        data = read(options.authorization.config)
        return AuthorizationOptions(checked(data), options.authorization.config, data.decode(), options.authorization.policy_file)
    if errors := _mode_errors(options):
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    webhook = WebhookFlags(
        options.authorization.webhook_config_file,
        options.authorization.webhook_version,
        format_duration(options.authorization.webhook_cache_authorized_ttl),
        format_duration(options.authorization.webhook_cache_unauthorized_ttl),
    )
    return AuthorizationOptions(from_modes(options.authorization.mode, webhook), policy_file=options.authorization.policy_file)


def _mode_errors(options: Options) -> list[str]:
    modes, errors = options.authorization.mode, []
    for mode in modes:
        if mode not in MODES:
            errors.append(f"authorization-mode {go_quote(mode)} is not a valid mode")
        if mode == "ABAC" and not options.authorization.policy_file:
            errors.append("authorization-mode ABAC's authorization policy file not passed")
        if mode == "Webhook" and not options.authorization.webhook_config_file:
            errors.append("authorization-mode Webhook's authorization config file not passed")
    if options.authorization.policy_file and "ABAC" not in modes:
        errors.append("cannot specify --authorization-policy-file without mode ABAC")
    if options.authorization.webhook_config_file and "Webhook" not in modes:
        errors.append("cannot specify --authorization-webhook-config-file without mode Webhook")
    if len(modes) != len(set(modes)):
        errors.append(f"authorization-mode [{' '.join(map(go_quote, modes))}] has mode specified more than once")
    return errors
