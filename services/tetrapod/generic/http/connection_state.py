"""`ConnectionState`: what a client connection does with the bytes that it receives.

| state      | received bytes                                               | until                                    |
|------------|--------------------------------------------------------------|------------------------------------------|
| OPEN       | are parsed as requests                                       | one of the events below                  |
| BACKLOGGED | are kept: a pipelined request is complete, and others wait   | the waiting requests have been started   |
| DECODING   | are kept: a body in many small chunks is decoded in steps    | all received bytes are decoded           |
| UPGRADING  | are kept: the head of an upgrade request ended the HTTP part | the handler has taken over or answered   |
| HIJACKED   | are kept in the `HijackedConnection`                         | another protocol has taken over          |
| BROKEN     | are dropped: the response to a malformed body is still due   | the response is written                  |
| CLOSED     | are dropped, and nothing more is written                     | (final)                                  |

Every state can become CLOSED: the client closed the connection, or the server rejected a request. A transport that is
closed without lingering keeps the state of its connection until `connection_lost`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class ConnectionState(Enum):
    """The state of a client connection (`HttpProtocol`), which decides what happens to the bytes that it receives.

    Attributes:
        OPEN: received bytes are parsed as requests.
        BACKLOGGED: received bytes are kept, because pipelined requests wait.
        DECODING: received bytes are kept, because a body in many small chunks is decoded in several steps.
        UPGRADING: received bytes are kept until the handler of an upgrade request has answered or taken over.
        HIJACKED: received bytes are kept for the protocol that takes over the connection.
        BROKEN: received bytes are dropped, because a body was malformed; its response is still due.
        CLOSED: received bytes are dropped, and nothing more is written.
    """

    OPEN = "open"
    BACKLOGGED = "backlogged"
    DECODING = "decoding"
    UPGRADING = "upgrading"
    HIJACKED = "hijacked"
    BROKEN = "broken"
    CLOSED = "closed"


# Module constants, because reading a member of an Enum class is slower than reading a global.
OPEN: Final = ConnectionState.OPEN
BACKLOGGED: Final = ConnectionState.BACKLOGGED
DECODING: Final = ConnectionState.DECODING
UPGRADING: Final = ConnectionState.UPGRADING
HIJACKED: Final = ConnectionState.HIJACKED
BROKEN: Final = ConnectionState.BROKEN
CLOSED: Final = ConnectionState.CLOSED

TRANSITIONS: Final[Mapping[ConnectionState, frozenset[ConnectionState]]] = {
    OPEN: frozenset({BACKLOGGED, DECODING, UPGRADING, BROKEN, CLOSED}),
    BACKLOGGED: frozenset({OPEN, CLOSED}),
    DECODING: frozenset({OPEN, CLOSED}),
    UPGRADING: frozenset({OPEN, HIJACKED, CLOSED}),
    HIJACKED: frozenset({CLOSED}),
    BROKEN: frozenset({CLOSED}),
    CLOSED: frozenset({CLOSED}),
}
"""The states that may follow each state. The tests of `generic/http` check every transition that they cause."""
