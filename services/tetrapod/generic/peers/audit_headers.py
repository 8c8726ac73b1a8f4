"""The headers by which the front asks the services behind it for audit findings (audit/findings.py), for who only passes them on."""

from __future__ import annotations

from typing import Final

ASKED: Final = b"x-remote-audit"
FOUND: Final = b"x-remote-audit-findings"
OMITTING: Final = "; omit-managed-fields"
STATE: Final = "audit findings are asked for"
"""Where in `Request.state` the authenticator of the front proxy leaves what it asks for."""
