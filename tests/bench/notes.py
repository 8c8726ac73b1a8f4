"""Explanations of figures above their goals. The report shows a note only for such a figure."""

from __future__ import annotations

from typing import Final

_TWO = (
    "Aggregator and core both run the whole filter chain, and encrypt and decrypt TLS. "
    "Each of them takes half of a GET's CPU time. "
    "The aggregator takes a quarter to a third of a write's, and core the rest."
)
_GET = (
    "Aggregator and core take half each. In a profile of 2026-11-28 the aggregator's filters took 31 % of its half "
    "(authentication 9, priority and fairness 7, authorization 4). TLS and sockets took 27 %, tasks and the event "
    "loop 20, forwarding 13, and parsing 9. In core, filters took 30 % (fair scheduling 9, authentication 8). TLS "
    "and sockets took 17 %, the read of etcd's revision 17, tasks and the event loop 16, the verb and its storage "
    "11, and parsing 8."
)
_CREATE = (
    "The aggregator takes a third of it, and does the same as for a GET. In a profile of 2026-11-28, decoding, "
    "admission, validation and managed fields took 41 % of core's part. The calls of etcd took 17 %, and filters 15. "
    "The event loop, the watch cache and informers took 15 %, TLS and sockets 7, and parsing 2."
)
_TWICE = (
    "29 MB over TLS cost 17 ms to write and 24 ms to read on a machine whose `hello` is 45 µs. Core writes them, "
    "and the aggregator reads and writes them. This is about 1,300 × hello before any other work."
)
_CODE = (
    "25 MB of it are pages of libraries that all four services share (cryptography, Python, OpenSSL), "
    "and 20 MB are Python modules."
)
_FLOODED = (
    "Four runs of 2026-11-22 gave 1.1 to 2.3 (GETs, median 1.6), 1.2 to 2.1 (LISTs, 1.7), 1.6 to 2.1 (PATCHes, 1.8). "
    "Six processes and the load share two cores, and a wait for a core is one or two of the scheduler's ticks of 4 "
    "ms. kube-apiserver had 10.7, 1.2 and 28.9 the evening before."
)


def _profile(parts: str) -> str:
    """Return a note with the largest parts of a work in docs/reference/profiles.md, in per cent."""
    return f"The largest parts in [profiles.md](profiles.md), in per cent: {parts}."


NOTES: Final[dict[tuple[str, str], str]] = {
    ("embedded", "get"): _profile("HTTP, TLS and sockets 52, filters 33, the handler and the registry 10"),
    ("embedded", "create"): _profile(
        "the store and its watch cache 27, HTTP, TLS and sockets 24, the handler and the registry 17, filters 16"
    ),
    ("embedded", "apply"): _profile(
        "the store and its watch cache 25, HTTP, TLS and sockets 25, the handler and the registry 18, filters 10"
    ),
    ("embedded", "patch"): (
        "16 clients patch one object. Each waits for the writes before its own, and is computed once. "
        + _profile("the event loop, TLS and sockets 39, the store and its watch cache 38")
    ),
    ("embedded", "create-pod"): _profile(
        "the store and its watch cache 26, HTTP, TLS and sockets 18, the handler and the registry 14, admission 11, "
        "validation and defaults 10"
    ),
    ("embedded", "proxy"): _profile(
        "HTTP, TLS and sockets of both connections 51, sending and receiving 26, filters 21"
    ),
    ("embedded", "custom-create"): _profile(
        "validation and defaults 24, the store and its watch cache 16, managed fields 14, "
        "the handler and the registry 12"
    ),
    ("embedded", "custom-patch"): _profile(
        "the store and its watch cache 19, validation and defaults 17, managed fields and the patch 16, decoding and "
        "encoding 15"
    ),
    ("embedded", "start-second"): "It depends on the hour: 0.45 to 1.2 s. Two thirds are imports.",
    ("four", "custom-create"): _TWO,
    ("four", "custom-patch"): _TWO,
    ("four", "proxy"): _profile("HTTP, TLS and sockets of both connections 52, sending and receiving 27, filters 18"),
    ("four", "crd-start"): (
        "Four processes start at once on two cores. Half of their CPU time until ready are imports. Definitions, "
        "500 or none, make no visible difference."
    ),
    ("embedded", "list"): (
        "Encrypting and sending 29 MB takes about 17 ms where `hello` is 45 µs, 380 × hello. "
        "The rest is the joining of items."
    ),
    ("embedded", "list-cached"): "As for the consistent list.",
    ("embedded", "watch"): (
        "In a profile five sixths of an event's delivery were uvloop's TLS and the send. "
        "A bare uvloop server that writes 650 bytes over TLS to 200 clients took 12 to 15 µs for each on such a "
        "machine, which alone is about the goal."
    ),
    ("embedded", "crd-served"): "Two writes of status follow, each with its commit to disk.",
    ("embedded", "flood-write"): (
        "1.9, 1.7 and 1.8 in runs of 2026-11-22. A GET waits for the current step of the event loop: half a "
        "millisecond of CPU time, and up to two in one of a hundred."
    ),
    ("embedded", "crd-stall"): "No step of the event loop took longer than 100 ms in asyncio's debug mode.",
    (
        "embedded",
        "flood-get",
    ): "0.8, 1.5, 2.4 and 4.1 in four runs of 2026-11-22. kube-apiserver had 10.7 the evening before.",
    ("four", "flood-get"): _FLOODED,
    ("four", "flood-list"): _FLOODED,
    ("four", "flood-write"): _FLOODED,
    ("four", "flood-streams"): _FLOODED,
    ("four", "crd-served"): "Two writes of status follow, each with its commit to disk. It was 10 ms on 2026-11-28.",
    ("four", "crd-stall"): (
        "Present in most runs. Two processes create and forward the document at that time, on two cores."
    ),
    ("four", "get"): _GET,
    ("four", "create"): _CREATE,
    ("four", "apply"): _TWO,
    ("four", "patch"): _TWO,
    ("four", "create-pod"): _TWO,
    ("four", "list"): _TWICE,
    ("four", "list-cached"): _TWICE,
    ("four", "watch"): (
        "Every watch is a stream from core through the aggregator. Each event is encrypted twice and decrypted once."
    ),
    ("four", "idle-aggregator"): _CODE,
    (
        "four",
        "idle-core",
    ): f"{_CODE} core's own modules (strategies, validation, tables of every kind) are 6 MB of these.",
    ("four", "idle-extensions"): _CODE,
    ("four", "idle-auth"): _CODE,
    ("four", "crd"): "All four processes are counted, and three of them follow definitions.",
}
"""Notes by target and work. They name only measured causes."""

HTTP2: Final = """
## Over HTTP/2

`make bench ARGS=--http2` sends the works over one HTTP/2 connection by a Go client, 16 at once. With `ARGS=--h2load`,
h2load of nghttp2 sends those without a body. Both print their figures. These are shares of kube-apiserver's CPU time
over HTTP/2 on 2026-11-29, on a quiet machine, with 6 pairs of seconds:

| work | one process | four services |
| --- | --- | --- |
| GET one ConfigMap | 0.33 (0.31 to 0.35) | 1.17 (1.11 to 1.27) |
| CREATE ConfigMap | 0.94 (0.81 to 0.98) | 1.48 (1.40 to 1.72) |
| server-side APPLY | 0.68 (0.61 to 0.70) | 1.04 (0.99 to 1.13) |
| watch: delivery of one event to one of 200 watchers | 0.94 (0.82 to 1.11) | 1.49 (1.26 to 1.72) |
| CREATE pod (default admission) | 0.99 (0.71 to 1.08) | 1.30 (1.21 to 1.44) |
| merge PATCH of one object | 0.18 (0.17 to 0.18) | 0.24 (0.20 to 0.26) |
| LIST 10,000 pods, consistent | 0.11 (0.10 to 0.12) | 0.28 (0.24 to 0.30) |
| LIST as Table of 500 | 0.15 (0.14 to 0.19) | 0.29 (0.28 to 0.31) |
| GET proxied to an aggregated server | 0.53 (0.41 to 0.71) | 0.56 (0.46 to 0.61) |
| CREATE a custom object (24 kB schema, three CEL rules) | 0.35 (0.33 to 0.40) | 0.48 (0.43 to 0.50) |
| merge PATCH of a custom object (same schema), 64 objects in turn | 0.28 (0.24 to 0.32) | 0.36 (0.31 to 0.39) |

These figures are of one process, on a machine that others loaded (2026-11-28):

| figure | measured |
| --- | --- |
| GET one ConfigMap, Go client | 109 µs, 2.39 × hello |
| GET one ConfigMap, h2load | 132 µs, 2.25 × hello |
| p99 of one user's GETs during another's flood of GETs, 1,000 streams on one connection | 1.4 to 2.9 ms |
| the same without the flood | 1.2 to 7.6 ms |
| the same flood with steps of 5 ms in which frames are processed, as before | 12.2 to 13.2 ms |

Nearly all requests of that flood (10,000 a second) were answered with 429.
"""
"""A section of the page that is not measured with it."""

INTERPRETERS: Final = """
## Other interpreters

`make bench ARGS='--beside-python PYTHON'` compares two interpreters. These are the ratios of their CPU time on
2026-11-28, in one process, with 8 pairs:

| work | 3.11.7 of pyenv to 3.11.2 of Debian | 3.11.2 to 3.13.5 of Debian | 3.11.2 to 3.14.10 of Debian |
| --- | --- | --- | --- |
| GET one ConfigMap | 1.24 (1.20 to 1.27) | 1.07 (1.05 to 1.12) | 1.03 (0.97 to 1.12) |
| CREATE ConfigMap | 1.07 (0.97 to 1.14) | 1.04 (0.65 to 1.94) | 0.95 (0.91 to 0.96) |
| server-side APPLY | 1.10 (1.04 to 1.13) |  | 0.95 (0.92 to 1.07) |
| CREATE pod (default admission) | 1.05 (0.92 to 1.13) |  |  |

The tables above were measured with Debian's interpreter since 2026-11-29, and with that of pyenv before. pyenv builds
without `--enable-optimizations` and `--with-lto` by default. Debian's packages and the official images of Python have
both. A newer version of Python alone makes no difference that was larger than the noise.
"""
"""A section of the page that is not measured with it."""
