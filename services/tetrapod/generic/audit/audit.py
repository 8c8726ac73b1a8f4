"""`Audit`: what is audited of the requests of a server, and where the events go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tetrapod.generic.audit.backend import Backend
from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.metrics import LEVEL_TOTAL
from tetrapod.generic.audit.policy import LEVEL_NAMES, Level, Policy
from tetrapod.generic.request import Request
from tetrapod.generic.user import UserInfo

SEEN: Final = "audit policy was asked"
"""Where in `Request.state` it is left that the policy was asked."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What is audited, and where the events go."""

    policy: Policy
    backend: Backend

    def context(self, request: Request, user: UserInfo | None) -> AuditContext | None:
        """None where the policy does not want the request."""
        request.state[SEEN] = True
        if request.info is None:
            return None
        auditing = self.policy.evaluate(user, request.info)
        LEVEL_TOTAL.add((LEVEL_NAMES[auditing.level],))
        if auditing.level is Level.NONE:
            return None
        return AuditContext(request, auditing, self.backend, user)
