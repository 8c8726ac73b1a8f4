"""Paths, names and headers of the communication between the four services.

The auth service serves the paths, and rejects users outside `SERVICES_GROUP`. A service is in that group by its own
client certificate or by front-proxy identity headers. Certificates of users cannot grant it
(`X509Authenticator.reserved_groups`).
"""

from __future__ import annotations

from typing import Final

from tetrapod.generic.peers.audit_headers import RESPONSE_HEADER as AUDIT_FINDINGS

SERVICES_GROUP: Final = "system:tetrapod:services"
CORE: Final = "system:tetrapod:core"
"""The user of core's certificate; that of auth's is `system:tetrapod:auth`. Their permissions are in
auth/rbac/data/services.json.
"""
RULES_PATH: Final = "/internal/tetrapod/rules"
TOKEN_REQUESTS_PATH: Final = "/internal/tetrapod/tokenrequests"
SECRET_TOKENS_PATH: Final = "/internal/tetrapod/secrettokens"
NOT_PROCESSED: Final = b"x-tetrapod-untouched"
"""The header by which a stopping service declares that it has not processed a request, so that another replica may be
used.
"""
TRACE_SPANS: Final = b"x-remote-trace-spans"
RESPONSE_HEADERS: Final = frozenset({NOT_PROCESSED, TRACE_SPANS, AUDIT_FINDINGS})
"""Response headers from a service to the aggregator. They are removed from responses of all other servers."""
