"""The authenticator of --token-auth-file, whose lines are `token,user,uid[,"group1,group2"]`.

Upstream: staging/src/k8s.io/apiserver/pkg/authentication/token/tokenfile/tokenfile.go.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Mapping, Sequence

from tetrapod.generic.authentication.interface import Authenticated
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)


def read_token_file(text: str) -> dict[str, UserInfo]:
    """Return the users of a token file by token.

    Lines with an empty token are skipped, and the last line of a duplicate token applies; both are logged.

    Args:
        text: the content of the file.

    Raises:
        ValueError: a line has fewer than three columns, a column is too long, or a quote is not closed.
    """
    users: dict[str, UserInfo] = {}
    for number, row in enumerate(_rows(text), 1):
        columns = [column.strip() for column in row]
        if not columns:
            continue
        if len(columns) < 3:
            raise ValueError(
                f"token file line {number} must have at least 3 columns (token, user name, user uid), "
                f"found {len(columns)}"
            )
        token, name, uid = columns[:3]
        if not token:
            log.warning("an empty token has been found in the token file, line %d", number)
            continue
        if token in users:
            log.warning("a duplicate token has been found in the token file, line %d", number)
        groups = columns[3].split(",") if len(columns) > 3 and columns[3] else []
        users[token] = UserInfo(name, uid, tuple(groups))
    return users


def _rows(text: str) -> Iterator[list[str]]:
    lines = csv.reader(text.splitlines(), strict=True)
    try:
        yield from lines
    except csv.Error as error:
        raise ValueError(f"token file line {lines.line_num}: {error}") from None


class StaticTokenAuthenticator:
    """The authenticator of static tokens, which are valid only for the audiences of this server.

    Args:
        users: the users by token.
        audiences: the audiences of this server.
    """

    def __init__(self, users: Mapping[str, UserInfo], audiences: Sequence[str]) -> None:
        self._users = users
        self._audiences = tuple(audiences)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        user = self._users.get(token)
        if user is None:
            return None
        accepted = tuple(a for a in audiences or self._audiences if a in self._audiences)
        return Authenticated(user, accepted) if accepted else None
