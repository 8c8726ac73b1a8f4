"""The headers by which a front proxy requests audit data from the services behind it (audit/peer_audit.py).

They are defined here for modules that only forward or remove them.
"""

from __future__ import annotations

from typing import Final

REQUEST_HEADER: Final = b"x-remote-audit"
RESPONSE_HEADER: Final = b"x-remote-audit-findings"
OMIT_MANAGED_FIELDS: Final = "; omit-managed-fields"
STATE_KEY: Final = "audit data is requested"
"""The key in `Request.state` under which the front proxy's authenticator stores the request header."""
