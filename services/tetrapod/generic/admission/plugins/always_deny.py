"""AlwaysDeny, off by default: rejects every write, deletion and connection.

Upstream: plugin/pkg/admission/deny
"""

from __future__ import annotations

import logging

from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden

log = logging.getLogger(__name__)


class AlwaysDeny(Plugin):
    """The plugin AlwaysDeny, which rejects every request with a 403.

    It logs upstream's deprecation warning when it is created.
    """

    name = "AlwaysDeny"

    def __init__(self) -> None:
        log.warning(
            "%s admission controller is deprecated. Please remove this controller from your configuration files and "
            "scripts.",
            self.name,
        )

    async def admit(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")

    async def validate(self, attributes: Attributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")
