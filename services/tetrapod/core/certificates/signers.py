"""Authorization of verbs on certificate signers.

Upstream: pkg/certauthorization/certauthorization.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.authorization.interface import Attributes, Authorizer, Decision
from tetrapod.machinery.user import UserInfo

GROUP: Final = "certificates.k8s.io"


async def authorized_for_signer(authorizer: Authorizer, user: UserInfo, verb: str, signer: str) -> bool:
    """Return whether the user may perform `verb` on the signer, by its name or by its domain (`example.com/*`).

    Upstream: pkg/certauthorization/certauthorization.go, IsAuthorizedForSignerName
    """
    for name in (signer, signer.partition("/")[0] + "/*"):
        attributes = Attributes(
            user, verb, group=GROUP, version="*", resource="signers", name=name, resource_request=True
        )
        if (await authorizer.authorize(attributes)).decision is Decision.ALLOW:
            return True
    return False
