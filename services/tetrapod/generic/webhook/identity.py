"""`Identity`: who we are to a webhook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tetrapod.generic.request import HeaderList


@dataclass(frozen=True, slots=True)
class Identity:
    """Files with a certificate and its key, headers; `token_file` is read for each call, since it may be renewed."""

    certificate: str = ""
    key: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    token_file: str = ""

    def credentials(self) -> HeaderList:
        """Raises OSError."""
        if not self.token_file:
            return list(self.headers)
        token = Path(self.token_file).read_text().strip()
        return [*self.headers, (b"authorization", f"Bearer {token}".encode())]


NOBODY: Final = Identity()
