"""Why a figure is above its goal; printed under the table only where it is."""

from __future__ import annotations

from typing import Final

_FRONT = "two processes take part: the aggregator's filters and its proxy, then core's filters once more; each hop costs about two `hello`"
_TLS = "encrypting and sending one frame to one client alone costs about a third of `hello` in uvloop; the write itself is shared by 200"
_IMPORTS = "CPython with grpcio, cryptography and the schemas of all built-in kinds in memory"

NOTES: Final[dict[tuple[str, str], str]] = {
    ("embedded", "get"): "near the goal: under load from others the multiple moves by a third between runs.",
    ("embedded", "create"): "decoding, defaulting, validation, managedFields and a commit of its own; batches are small at 16 connections.",
    ("embedded", "apply"): "field sets are merged in Python for each request, and each write is a commit of its own.",
    ("embedded", "create-pod"): "admission and validation of a pod are Python; several controllers are told of each.",
    ("embedded", "list"): "nearly all of it is TLS: copying, encrypting and sending 29 MB; the rest is the join of the bytes.",
    ("embedded", "list-cached"): "nearly all of it is TLS: copying, encrypting and sending 29 MB; the rest is the join of the bytes.",
    ("embedded", "watch"): f"{_TLS}.",
    ("embedded", "crd"): "the definition is kept parsed by its controllers beside the stored bytes.",
    ("four", "get"): f"{_FRONT}.",
    ("four", "create"): f"{_FRONT}; etcd is reached by grpcio.",
    ("four", "apply"): f"{_FRONT}; etcd is reached by grpcio.",
    ("four", "patch"): f"{_FRONT}; etcd is reached by grpcio, and writers of one object wait for each other.",
    ("four", "create-pod"): f"{_FRONT}; etcd is reached by grpcio, and controllers are told of each pod over TLS.",
    ("four", "list"): "29 MB are encrypted, sent, received and decrypted between core and aggregator, then sent again.",
    ("four", "list-cached"): "29 MB are encrypted, sent, received and decrypted between core and aggregator, then sent again.",
    ("four", "page"): "1.4 MB cross the wire twice, encrypted each time.",
    ("four", "selector"): "2.9 MB cross the wire twice, encrypted each time.",
    ("four", "watch"): f"each event crosses to the aggregator 200 times, and {_TLS}.",
    ("four", "idle-aggregator"): f"{_IMPORTS}.",
    ("four", "idle-core"): f"{_IMPORTS}.",
    ("four", "idle-extensions"): f"{_IMPORTS}.",
    ("four", "idle-auth"): f"{_IMPORTS}.",
    ("four", "crd"): "four processes are counted; aggregator, core and extensions each follow definitions.",
}
"""By target and work."""
