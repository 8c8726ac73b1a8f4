"""Bodies in CBOR, which only the form `cbor` of the server decodes; by users who may write ConfigMaps and widgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stall.case import BODY, Case
from stall.cases.bodies import CREATE
from stall.message import CBOR, Message
from stall.setup import GROUP, WIDGETS
from tetrapod.machinery import cbor

_STRICT: Final = f"{CREATE}&fieldValidation=Strict"
_NAMED: Final = cbor.encode({"metadata": {"generateName": "a"}})[len(cbor.MAGIC) + 1 :]
"""The members of an object with metadata only."""
_WIDGET: Final = cbor.encode({"apiVersion": f"{GROUP}/v1", "kind": "Widget"})[len(cbor.MAGIC) + 1 :] + _NAMED


def _case(name: str, members: Callable[[int], bytes], path: str = CREATE, own: bytes = _NAMED) -> Case:
    """Return the case of an object with the given members besides `own`, as a map of indefinite length."""

    def message(n: int) -> Message:
        return Message("POST", path, body=b"\xbf" + own + members(n) + b"\xff", media_type=CBOR)

    return Case(name, "user", message, BODY)


def _text(text: str) -> bytes:
    return cbor.encode(text)[len(cbor.MAGIC) :]


def _entries(n: int) -> bytes:
    return b"".join([b"%ck%d\x01" % (0x41 + len(str(i)), i) for i in range(n)])


def _data(n: int) -> bytes:
    return _text("data") + b"\xbf" + b"".join([b"%ck%d\x41v" % (0x41 + len(str(i)), i) for i in range(n)]) + b"\xff"


CASES: Final = [
    _case("CBOR: entries of data", _data),
    _case("CBOR: unknown fields", _entries),
    _case("CBOR: unknown fields, strict", _entries, _STRICT),
    _case("CBOR: unknown fields, then a bad one", lambda n: _entries(n) + _text("data") + b"\x01"),
    _case("CBOR: unknown fields, then a duplicate", lambda n: _entries(n) + _text("k0") + b"\x01"),
    _case("CBOR: entries of an unknown field", lambda n: _text("u") + b"\xbf" + _entries(n) + b"\xff"),
    _case("CBOR: items of an unknown field", lambda n: _text("u") + b"\x9f" + b"\xf6" * n + b"\xff"),
    _case("CBOR: chunks of an unknown field", lambda n: _text("u") + b"\x7f" + b"\x61a" * n + b"\xff"),
    _case("CBOR: tags", lambda n: _text("u") + b"\xc6" * n + b"\xf6"),
    _case("CBOR: broken at the end", lambda n: _entries(n) + b"\x1c"),
    _case("CBOR: widget of entries", _entries, f"{WIDGETS}?dryRun=All", _WIDGET),
]
