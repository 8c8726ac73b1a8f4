"""Why a figure is above its goal; printed under the table only where it is."""

from __future__ import annotations

from typing import Final

_CROWD = "measured beside fifteen busy processes, where figures moved by a third from one run to the next"
_TWO = (
    "aggregator and core both meet the whole chain of filters, and TLS both ways: of a GET they take half each, of a write the aggregator "
    "a quarter to a third and core the rest"
)
_TWICE = (
    "29 MB over TLS cost 17 ms to write and 24 ms to read on a machine whose `hello` is 45 µs: core writes them, the aggregator reads and "
    "writes them, which is about 1,300 × hello before anything is made of them"
)
_CODE = "of its memory 25 MB are pages of libraries that all four share (cryptography, Python, OpenSSL), and 20 MB are modules of Python"

_FLOODED = (
    "in four runs of 2026-11-22: 1.1 to 2.3 (GETs, median 1.6), 1.2 to 2.1 (LISTs, 1.7), 1.6 to 2.1 (PATCHes, 1.8); six processes and the "
    "load share two cores, and a wait for one is one or two of the scheduler's ticks of 4 ms; kube-apiserver the evening before: 10.7, "
    "1.2, 28.9"
)
_HOUR: Final = "not settled, the machine was in a slow hour"
NOTES: Final[dict[tuple[str, str], str]] = {
    ("embedded", "get"): f"in a profile a third was encrypting and sending, a quarter the filters, a tenth the handler; {_CROWD}.",
    ("embedded", "create"): "in a profile half was the handler (managed fields a tenth, decoding a twelfth), the rest filters and TLS.",
    ("embedded", "apply"): (
        "in a profile the merge and its managed fields took a quarter, checks and the write of the update another, "
        "encrypting and sending a tenth."
    ),
    ("embedded", "patch"): "16 clients patch one object: each waits for the one before, and is tried again where it lost.",
    ("embedded", "create-pod"): f"not examined alone; {_CROWD}.",
    ("embedded", "selector"): f"{_HOUR}: a run by itself minutes later gave 151 × hello, and 290 for a commit that had given 180.",
    ("embedded", "start-second"): f"{_HOUR}: 0.7 to 1.2 s at that time, 0.45 s in a fast hour of the same day; two thirds are imports.",
    ("four", "custom-create"): f"{_TWO}.",
    ("four", "custom-patch"): f"{_TWO}.",
    ("four", "crd-start"): (
        "four processes start at once on two cores; of their CPU until ready half are imports, and definitions, 500 or none, "
        "make no difference that shows."
    ),
    ("embedded", "list"): "encrypting and sending 29 MB takes about 17 ms where `hello` is 45 µs, 380 × hello: the rest is joining items.",
    ("embedded", "list-cached"): "as for the consistent list.",
    ("embedded", "watch"): (
        "in a profile five sixths of an event's delivery were uvloop's TLS and the send: a bare uvloop server that writes 650 bytes over "
        "TLS to 200 clients took 12 to 15 µs for each on this kind of machine, about the goal by itself."
    ),
    (
        "embedded",
        "crd-served",
    ): "two writes of status follow, each with its commit to disk; 16 to 34 ms were seen with 300 CRDs.",
    ("embedded", "flood-write"): (
        "1.9, 1.7 and 1.8 in runs of 2026-11-22: a GET waits for the step of the loop that runs, half a millisecond of CPU, up to two in "
        "one of a hundred."
    ),
    ("embedded", "crd-stall"): f"no step of the loop took longer than 100 ms in asyncio's debug mode; {_CROWD}.",
    ("embedded", "flood-get"): "0.8, 1.5, 2.4 and 4.1 in four runs of 2026-11-22; kube-apiserver the evening before: 10.7.",
    ("four", "flood-get"): f"{_FLOODED}.",
    ("four", "flood-list"): f"{_FLOODED}.",
    ("four", "flood-write"): f"{_FLOODED}.",
    ("four", "crd-stall"): "seen in most runs; two processes make and pass on the document meanwhile, on two cores.",
    ("four", "get"): f"{_TWO}.",
    ("four", "create"): f"{_TWO}.",
    ("four", "apply"): f"{_TWO}.",
    ("four", "patch"): f"{_TWO}.",
    ("four", "create-pod"): f"{_TWO}.",
    ("four", "list"): f"{_TWICE}.",
    ("four", "list-cached"): f"{_TWICE}.",
    ("four", "page"): f"{_TWICE}.",
    ("four", "selector"): f"{_TWICE}.",
    ("four", "watch"): "every watch is a stream from core through the aggregator: each event is encrypted twice, and read once.",
    ("four", "idle-aggregator"): f"{_CODE}.",
    ("four", "idle-core"): f"{_CODE}; core's own (strategies, validation, tables of every kind) are 6 MB of them.",
    ("four", "idle-extensions"): f"{_CODE}.",
    ("four", "idle-auth"): f"{_CODE}.",
    ("four", "crd"): "all four processes are counted, and three of them follow definitions.",
}
"""By target and work. Only what was measured is given as a cause."""
