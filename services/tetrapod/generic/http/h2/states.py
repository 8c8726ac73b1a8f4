"""`SessionState` and `StreamState`: the states of an HTTP/2 connection and of its streams.

| connection | received frames                                                | until                                 |
|------------|----------------------------------------------------------------|---------------------------------------|
| PREFACE    | must be the client's preface and its SETTINGS                  | both have arrived                     |
| SERVING    | are processed                                                  | one of the events below               |
| DRAINING   | are processed, but new streams are ignored: GOAWAY was sent    | the last stream has ended             |
| CLOSED     | are dropped, and nothing more is written                       | (final)                               |

| stream     | the client                                                     | until                                 |
|------------|----------------------------------------------------------------|---------------------------------------|
| OPEN       | may send the body of its request                               | END_STREAM arrives or is sent         |
| HALF_CLOSED| has sent its request and waits for the response                | END_STREAM is sent                    |
| ANSWERED   | has the response, and may send the rest of its request, which  | END_STREAM arrives, or the server     |
|            | is dropped                                                     | cuts the request off                  |
| CLOSED     | has the response, or one side has reset the stream             | (final)                               |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class SessionState(Enum):
    """The state of an HTTP/2 connection, which decides what happens to the frames that it receives.

    Attributes:
        PREFACE: the first bytes must be the client's preface and its SETTINGS.
        SERVING: received frames are processed.
        DRAINING: GOAWAY was sent: frames are processed, but new streams are ignored. It ends with the last stream.
        CLOSED: received frames are dropped, and nothing more is written.
    """

    PREFACE = "preface"
    SERVING = "serving"
    DRAINING = "draining"
    CLOSED = "closed"


class StreamState(Enum):
    """The state of an HTTP/2 stream: which of the client and the server may still send on it.

    Attributes:
        OPEN: the client may send the body of its request.
        HALF_CLOSED: the client has sent its request, and waits for the response.
        ANSWERED: the client has the response; the rest of its request is dropped.
        CLOSED: both sides have ended the stream, or one has reset it.
    """

    OPEN = "open"
    HALF_CLOSED = "half-closed (remote)"
    ANSWERED = "half-closed (local)"
    CLOSED = "closed"


# Module constants, because reading a member of an Enum class is slower than reading a global.
PREFACE: Final = SessionState.PREFACE
SERVING: Final = SessionState.SERVING
DRAINING: Final = SessionState.DRAINING
SESSION_CLOSED: Final = SessionState.CLOSED
OPEN: Final = StreamState.OPEN
HALF_CLOSED: Final = StreamState.HALF_CLOSED
ANSWERED: Final = StreamState.ANSWERED
CLOSED: Final = StreamState.CLOSED

SESSION_TRANSITIONS: Final[Mapping[SessionState, frozenset[SessionState]]] = {
    PREFACE: frozenset({SERVING, SESSION_CLOSED}),
    SERVING: frozenset({DRAINING, SESSION_CLOSED}),
    DRAINING: frozenset({SESSION_CLOSED}),
    SESSION_CLOSED: frozenset({SESSION_CLOSED}),
}
"""The states that may follow each state of a connection. The tests check every transition that they cause."""

STREAM_TRANSITIONS: Final[Mapping[StreamState, frozenset[StreamState]]] = {
    OPEN: frozenset({HALF_CLOSED, ANSWERED, CLOSED}),
    HALF_CLOSED: frozenset({CLOSED}),
    ANSWERED: frozenset({CLOSED}),
    CLOSED: frozenset({CLOSED}),
}
"""The states that may follow each state of a stream."""
