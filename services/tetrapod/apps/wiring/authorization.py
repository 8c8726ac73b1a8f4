"""The options of the authorizers, from --authorization-config or from --authorization-mode and the related flags.

Upstream: pkg/kubeapiserver/options/authorization.go, BuiltInAuthorizationOptions (Validate, ToAuthorizationConfig)
"""

from __future__ import annotations

from typing import Final

from tetrapod.apps.options.options import Options
from tetrapod.auth.authorizers.chain import checked
from tetrapod.auth.authorizers.configuration import MODES, AuthorizationOptions, WebhookFlags, from_modes
from tetrapod.generic.configuration.files import read
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.golang.quoting import go_quote

_EXCLUDED_BY_CONFIG: Final = frozenset(
    {
        "authorization-mode",
        "authorization-webhook-config-file",
        "authorization-webhook-version",
        "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    }
)


def authorization_options(options: Options) -> AuthorizationOptions:
    """Return the options of the authorizers, with the text of the file if --authorization-config names one.

    Raises:
        ValueError: a flag or the file is invalid; the text is upstream's.
    """
    flags = options.authorization
    if flags.config:
        if options.given & _EXCLUDED_BY_CONFIG:
            text = "can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
            raise ValueError(f"--authorization-config {text}")
        data = read(flags.config)
        return AuthorizationOptions(checked(data), flags.config, data.decode(), flags.policy_file)
    if errors := _mode_errors(options):
        raise ValueError(aggregate_errors(errors))
    webhook = WebhookFlags(
        config_file=flags.webhook_config_file,
        version=flags.webhook_version,
        authorized_ttl=format_duration(flags.webhook_cache_authorized_ttl),
        unauthorized_ttl=format_duration(flags.webhook_cache_unauthorized_ttl),
    )
    return AuthorizationOptions(from_modes(flags.mode, webhook), policy_file=flags.policy_file)


def _mode_errors(options: Options) -> list[str]:
    flags = options.authorization
    modes, errors = flags.mode, []
    for mode in modes:
        if mode not in MODES:
            errors.append(f"authorization-mode {go_quote(mode)} is not a valid mode")
        if mode == "ABAC" and not flags.policy_file:
            errors.append("authorization-mode ABAC's authorization policy file not passed")
        if mode == "Webhook" and not flags.webhook_config_file:
            errors.append("authorization-mode Webhook's authorization config file not passed")
    if flags.policy_file and "ABAC" not in modes:
        errors.append("cannot specify --authorization-policy-file without mode ABAC")
    if flags.webhook_config_file and "Webhook" not in modes:
        errors.append("cannot specify --authorization-webhook-config-file without mode Webhook")
    if len(modes) != len(set(modes)):
        errors.append(f"authorization-mode [{' '.join(map(go_quote, modes))}] has mode specified more than once")
    return errors
