"""What the four services say to each other, below the Kubernetes API: paths, and who may use them.

The auth service serves these paths; it answers members of `SERVICES_GROUP` only. That group comes from a service's own
client certificate (or its front-proxy identity), never from a user's: see `X509Authenticator.reserved_groups`.
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.peers.audit_headers import FOUND as AUDIT_FINDINGS

SERVICES_GROUP: Final = "system:tetrapod:services"
CORE: Final = "system:tetrapod:core"
"""The user of core's certificate, as `system:tetrapod:auth` is of auth's. What they may do is in auth/rbac/data/services.json."""
RULES_PATH: Final = "/internal/tetrapod/rules"
TOKEN_REQUESTS_PATH: Final = "/internal/tetrapod/tokenrequests"
SECRET_TOKENS_PATH: Final = "/internal/tetrapod/secrettokens"
UNTOUCHED: Final = b"x-tetrapod-untouched"
"""The header of a refusal by which a service that stops tells the front that nothing was done: another replica may be asked."""
TRACE_SPANS: Final = b"x-remote-trace-spans"
ANSWERS: Final = frozenset({UNTOUCHED, TRACE_SPANS, AUDIT_FINDINGS})
"""Headers of answers by which a service tells the front something; nobody else's answer may carry one past a service."""
