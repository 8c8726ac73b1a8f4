"""`Audit`: the audit policy of a server and the backend of its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tetrapod.generic.audit.backend import Backend
from tetrapod.generic.audit.context import AuditContext
from tetrapod.generic.audit.metrics import LEVEL_TOTAL
from tetrapod.generic.audit.policy import LEVEL_NAMES, Level, Policy
from tetrapod.generic.http.request import Request
from tetrapod.machinery.user import UserInfo

DECIDED_KEY: Final = "audit policy was asked"
"""The key in `Request.state` that is set once the policy has been evaluated."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit policy of a server, and the backend to which it passes its events."""

    policy: Policy
    backend: Backend

    def context(self, request: Request, user: UserInfo | None) -> AuditContext | None:
        """Evaluate the policy; return the audit context of the request, or None if its level is None.

        The result is also None for a request without request info.

        Args:
            user: the authenticated user, or None if authentication failed.
        """
        request.state[DECIDED_KEY] = True
        if request.info is None:
            return None
        auditing = self.policy.evaluate(user, request.info)
        LEVEL_TOTAL.add((LEVEL_NAMES[auditing.level],))
        if auditing.level is Level.NONE:
            return None
        return AuditContext(request, auditing, self.backend, user)
