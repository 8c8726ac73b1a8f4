"""`Identity`: the credentials for calls to a webhook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tetrapod.generic.http.request import HeaderList


@dataclass(frozen=True, slots=True)
class Identity:
    """Files with a certificate and its key, and headers.

    `token_file` is read for each call, because the token may be renewed.
    """

    certificate: str = ""
    key: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    token_file: str = ""

    def credentials(self) -> HeaderList:
        """Return the headers with credentials. Raises OSError if the token file cannot be read."""
        if not self.token_file:
            return list(self.headers)
        token = Path(self.token_file).read_text().strip()
        return [*self.headers, (b"authorization", f"Bearer {token}".encode())]


NOBODY: Final = Identity()
