"""`--break-glass`: members of system:masters bypass webhooks and policies, in case these lock everyone out.

An unavailable webhook or an overly strict policy may reject the very requests that would repair it. Each bypass is
recorded in the audit event and in the log. Nothing else is bypassed: quotas, limits and validation still apply.
Upstream does not have this flag.
"""

from __future__ import annotations

import logging
from typing import Final

from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.machinery.user import SYSTEM_MASTERS

log = logging.getLogger(__name__)

ANNOTATION: Final = "break-glass.tetrapod.dev/"
"""Prefix of the audit annotation; the plugin's name follows."""


def bypasses(dependencies: PluginDependencies, attributes: Attributes) -> bool:
    """Return whether a request bypasses the webhooks and policies of the API.

    It does if --break-glass is set (`dependencies.break_glass`) and the user is in system:masters.
    """
    return dependencies.break_glass and SYSTEM_MASTERS in attributes.user.groups


def record_bypass(plugin: str, attributes: Attributes) -> None:
    """Record in the audit event and in the log that a request bypassed a webhook or policy plugin.

    The caller calls it only if the plugin would have called a webhook or evaluated a policy. Further calls for the same
    request and plugin (the reinvocation) do nothing.

    Args:
        plugin: the name of the plugin.
        attributes: the request.
    """
    if f"{ANNOTATION}{plugin}" in attributes.annotations:
        return  # recorded before the reinvocation
    attributes.annotate(f"{ANNOTATION}{plugin}", "passed")
    description = (
        f"{attributes.operation} {attributes.resource.group_resource} {attributes.namespace}/{attributes.name}"
    )
    log.warning("break glass: %s bypasses %s: %s", attributes.user.name, plugin, description)
