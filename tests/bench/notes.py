"""Why a figure is above its goal; printed under the table only where it is."""

from __future__ import annotations

from typing import Final

_UNKNOWN = "cause not examined"
_TWICE = "the answer crosses TLS twice, from core to the aggregator and on to the client; what each part costs was not measured"
_TWO = "aggregator and core both work on each request; what grpcio, admission and the second filter chain cost in it was not measured"
_WRITES = (
    "nearly all on the main thread, the commit thread takes about one `hello`, with about one commit for each request at 16 connections"
)

NOTES: Final[dict[tuple[str, str], str]] = {
    ("embedded", "get"): "not settled: runs of one day on a shared machine gave 1.9 to 3.5.",
    ("embedded", "create"): f"{_WRITES}; what on the main thread was not examined.",
    ("embedded", "apply"): f"{_WRITES}; what on the main thread was not examined.",
    ("embedded", "create-pod"): f"{_UNKNOWN}.",
    (
        "embedded",
        "list",
    ): "in a profile a little under half of the main thread's samples were in encrypting and sending; the rest was not examined.",
    ("embedded", "list-cached"): "as for the consistent list.",
    ("embedded", "watch"): (
        "a bare uvloop server that writes 650 bytes over TLS to 200 clients took 12 to 15 µs for each write on this kind of machine, about "
        "the goal by itself; runs of one day gave 0.45 to 1.0."
    ),
    ("embedded", "crd"): f"{_UNKNOWN}; measured right after creation, so what the window of recent changes still holds may be in it.",
    ("four", "get"): "aggregator and core share it about equally (4.1 and 4.6 × hello in a separate run).",
    ("four", "create"): f"{_TWO}.",
    ("four", "apply"): f"{_TWO}.",
    ("four", "patch"): f"{_TWO}.",
    ("four", "create-pod"): f"{_TWO}.",
    ("four", "list"): f"{_TWICE}.",
    ("four", "list-cached"): f"{_TWICE}.",
    ("four", "page"): f"{_TWICE}.",
    ("four", "selector"): f"{_TWICE}.",
    ("four", "watch"): "every watch is a stream from core through the aggregator, so each event is sent twice; shares were not measured.",
    ("four", "idle-aggregator"): f"{_UNKNOWN}.",
    ("four", "idle-core"): f"{_UNKNOWN}.",
    ("four", "idle-extensions"): f"{_UNKNOWN}.",
    ("four", "idle-auth"): f"{_UNKNOWN}.",
    ("four", "crd"): f"all four processes are counted; {_UNKNOWN}.",
}
"""By target and work. Only what was measured is given as a cause."""
