"""`--break-glass`: members of system:masters pass what users configured, when that keeps everybody out. Not upstream's.

A webhook whose server is away, or a policy that forbids too much, may refuse the very requests that would repair it. Whoever passes is
told of in the audit event and in the log. Nothing else is passed: quota, limits and the rules of kinds hold.
"""

from __future__ import annotations

import logging
from typing import Final

from tetrapod.generic.admission.interface import Attributes
from tetrapod.generic.admission.surroundings import Surroundings
from tetrapod.generic.user import SYSTEM_MASTERS

log = logging.getLogger(__name__)

ANNOTATION: Final = "break-glass.tetrapod.dev/"
"""With the plugin's name behind it, in the audit event."""


def lets_through(surroundings: Surroundings, attributes: Attributes) -> bool:
    return surroundings.break_glass and SYSTEM_MASTERS in attributes.user.groups


def tell(plugin: str, attributes: Attributes) -> None:
    """Of a request that a plugin would have had something to say about."""
    if f"{ANNOTATION}{plugin}" in attributes.annotations:
        return  # in an earlier turn
    attributes.annotate(f"{ANNOTATION}{plugin}", "passed")
    what = f"{attributes.operation} {attributes.resource.group_resource} {attributes.namespace}/{attributes.name}"
    log.warning("break glass: %s passes %s: %s", attributes.user.name, plugin, what)
