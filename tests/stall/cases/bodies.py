"""Bodies in every form that is decoded: JSON, YAML, protobuf; by users who may write ConfigMaps."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Final

from stall.case import BODY, Case
from stall.message import PROTOBUF, YAML, Message
from stall.setup import MAPS
from stall.shuffled import shuffled

CREATE: Final = f"{MAPS}?dryRun=All"
_STRICT: Final = f"{CREATE}&fieldValidation=Strict"


def _json(name: str, body: Callable[[int], str], path: str = CREATE, who: str = "user", most: int = 10_000_000) -> Case:
    return Case(name, who, lambda n: Message("POST", path, body=body(n).encode()), BODY, most)


def _yaml(name: str, body: Callable[[int], str], path: str = CREATE, most: int = 10_000_000) -> Case:
    return Case(name, "user", lambda n: Message("POST", path, body=body(n).encode(), media_type=YAML), BODY, most)


def _join(form: str, n: int, separator: str = ",") -> str:
    return separator.join([form.replace("#", str(i)) for i in range(n)])


def _map(fields: str) -> str:
    return '{"metadata":{"generateName":"a"},' + fields + "}"


def _data(entry: str, n: int) -> str:
    return _map('"data":{' + _join(entry, n) + "}")


def _value(text: str) -> str:
    return _map('"data":{"k":"' + text + '"}')


def _unknown(value: str) -> str:
    return _map('"u":' + value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _protobuf(raw: bytes) -> bytes:
    """Return an object of ConfigMap's type in upstream's envelope."""
    return b"k8s\0" + _field(1, _field(1, b"v1") + _field(2, b"ConfigMap")) + _field(2, raw)


_METADATA: Final = _field(1, _field(2, b"a"))


def _encoded(name: str, raw: Callable[[int], bytes]) -> Case:
    return Case(name, "user", lambda n: Message("POST", CREATE, body=_protobuf(raw(n)), media_type=PROTOBUF), BODY)


CASES: Final = [
    _json("JSON: entries of data", lambda n: _data('"k#":"v"', n)),
    _json("JSON: entries of data, shuffled", lambda n: _map('"data":{' + ",".join(shuffled('"k#":"v"', n)) + "}")),
    _json("JSON: bad keys of data", lambda n: _data('"k #":"v"', n)),
    _json("JSON: bad long keys of data", lambda n: _data('"' + "!" * 300 + '#":""', n)),
    _json("JSON: one long value", lambda n: _value("x" * n)),
    _json("JSON: base64", lambda n: _map('"binaryData":{"k":"' + "QUFB" * n + '"}')),
    _json("JSON: bad base64", lambda n: _map('"binaryData":{' + _join('"k#":"A"', n) + "}")),
    _json("JSON: values of another type", lambda n: _data('"k#":1', n)),
    _json("JSON: escapes", lambda n: _value("\\u00e9" * n)),
    _json("JSON: lone surrogates", lambda n: _value("\\ud800" * n)),
    _json("JSON: escaped quotes", lambda n: _value('\\"' * n)),
    _json("JSON: duplicate keys", lambda n: _data('"k":"v"', n)),
    _json("JSON: duplicate keys, strict", lambda n: _data('"k":"v"', n), _STRICT),
    _json("JSON: unknown fields", lambda n: _map(_join('"u#":1', n))),
    _json("JSON: unknown fields, strict", lambda n: _map(_join('"u#":1', n)), _STRICT),
    _json("JSON: unknown fields, ignored", lambda n: _map(_join('"u#":1', n)), f"{CREATE}&fieldValidation=Ignore"),
    _json("JSON: fields in another case", lambda n: _map(_join('"DATA":{}', n))),
    _json("JSON: long number", lambda n: _map('"immutable":' + "9" * n)),
    _json("JSON: long number of an unknown field", lambda n: _unknown("9" * n)),
    _json("JSON: long numbers", lambda n: _unknown(f"[{_join('9' * 400, n)}]")),
    _json("JSON: long fraction", lambda n: _unknown("0." + "9" * n)),
    _json("JSON: large exponents", lambda n: _unknown(f"[{_join('1e308', n)}]")),
    _json("JSON: nested lists", lambda n: _unknown("[" * n + "]" * n)),
    _json("JSON: nested lists that do not end", lambda n: "[" * n),
    _json("JSON: nested objects", lambda n: _unknown('{"a":' * n + "1" + "}" * n)),
    _json(
        "JSON: nested objects, not too deep", lambda n: _unknown("[" + _join('{"a":' * 500 + "1" + "}" * 500, n) + "]")
    ),
    _json("JSON: empty objects", lambda n: _unknown(f"[{_join('{}', n)}]")),
    _json("JSON: nulls", lambda n: _data('"k#":null', n)),
    _json("JSON: blanks", lambda n: _map('"data":{}' + " " * n)),
    _json("JSON: bytes other than UTF-8", lambda n: _value("\x80" * n)),
    _json("JSON: broken at the end", lambda n: _map('"data":{' + _join('"k#":"v"', n))),
    _json("JSON: a list instead of an object", lambda n: f"[{_join('1', n)}]"),
    _json("JSON: a kind of any length", lambda n: f'{{"kind":"{"a" * n}"}}'),
    _json("JSON: an apiVersion of any length", lambda n: f'{{"apiVersion":"{"a/" * n}","kind":"ConfigMap"}}'),
    _json("JSON: anonymous", lambda n: _data('"k#":"v"', n), who="anonymous"),
    Case(
        "JSON: 15 rejections at once, unread",
        "user",
        lambda n: Message("POST", CREATE, body=_data('"k #":"v"', n).encode(), parallel=15, unread=True),
        2_100_000,
    ),
    Case(
        "JSON: gzip",
        "user",
        lambda n: Message(
            "POST", CREATE, (("Content-Encoding", "gzip"),), body=gzip.compress(_value("x" * n).encode())
        ),
        most=20_000_000,
    ),
    _yaml("YAML: entries", lambda n: "metadata: {generateName: a}\ndata:\n" + _join("  k#: v\n", n, "")),
    _yaml(
        "YAML: entries, shuffled", lambda n: "metadata: {generateName: a}\ndata:\n" + "".join(shuffled("  k#: v\n", n))
    ),
    _yaml("YAML: flow mapping", lambda n: "metadata: {generateName: a}\ndata: {" + _join("k#: v", n, ", ") + "}"),
    _yaml("YAML: flow sequence", lambda n: "u: [" + _join("a", n, ", ") + "]"),
    _yaml("YAML: sequence", lambda n: "u:\n" + "- a\n" * n),
    _yaml("YAML: quoted", lambda n: "metadata: {generateName: a}\ndata:\n" + _join('  k#: "v\\n"\n', n, "")),
    _yaml("YAML: plain scalar of lines", lambda n: "data:\n  k: a\n" + "    b\n" * n),
    _yaml("YAML: plain scalar of words", lambda n: "data:\n  k: " + "a " * n),
    _yaml("YAML: literal block", lambda n: "metadata: {generateName: a}\ndata:\n  k: |\n" + "    a\n" * n),
    _yaml("YAML: folded block", lambda n: "metadata: {generateName: a}\ndata:\n  k: >\n" + "    a\n\n" * n),
    _yaml("YAML: one long line", lambda n: "data:\n  k: " + "a" * n),
    _yaml("YAML: aliases", lambda n: "u:\n- &a [x]\n" + "- *a\n" * n),
    _yaml("YAML: anchors", lambda n: "u:\n" + _join("- &a# x\n", n, "")),
    _yaml("YAML: anchors and aliases", lambda n: "u:\n" + _join("- &a# x\n- *a#\n", n, "")),
    _yaml("YAML: merge keys", lambda n: "u:\n- &a {x: y}\n" + "- {<<: *a}\n" * n),
    _yaml("YAML: merge keys of merge keys", lambda n: "a0: &a0 {x: y}\n" + _join("b#: &b# {<<: *a0, z#: 1}\n", n, "")),
    _yaml("YAML: nested flow", lambda n: "u: " + "[" * n + "]" * n),
    _yaml("YAML: nested blocks", lambda n: "".join(" " * i + "a:\n" for i in range(n))),
    _yaml("YAML: nested sequences", lambda n: "- " * n + "a"),
    _yaml("YAML: explicit keys", lambda n: _join("? k#\n: v\n", n, "")),
    _yaml("YAML: comments", lambda n: "a: b\n" + "# c\n" * n),
    _yaml("YAML: documents", lambda n: "--- a\n" * n),
    _yaml("YAML: directives", lambda n: "%TAG !a! b\n" * n + "---\na: b\n"),
    _yaml("YAML: tags", lambda n: "u:\n" + "- !!str a\n" * n),
    _yaml("YAML: numbers", lambda n: "u:\n" + _join("- 0x#\n", n, "")),
    _yaml("YAML: sexagesimal numbers", lambda n: "u: 1" + ":59" * n),
    _yaml("YAML: underscores in a number", lambda n: "u: 1" + "_0" * n),
    _yaml("YAML: long number", lambda n: "u: " + "9" * n),
    _yaml("YAML: times", lambda n: "u:\n" + "- 2001-12-14t21:59:43.10-05:00\n" * n),
    _yaml("YAML: duplicate keys", lambda n: "metadata: {generateName: a}\ndata:\n" + "  k: v\n" * n),
    _yaml("YAML: duplicate keys, strict", lambda n: "metadata: {generateName: a}\ndata:\n" + "  k: v\n" * n, _STRICT),
    _yaml("YAML: JSON", lambda n: _data('"k#":"v"', n)),
    _yaml("YAML: JSON of blank lines", lambda n: "{" + "\n" * n + "}"),
    _yaml("YAML: escapes", lambda n: 'data: {k: "' + "\\u00e9" * n + '"}'),
    _yaml("YAML: bad at the end", lambda n: "data:\n" + _join("  k#: v\n", n, "") + "\t- x: ["),
    _encoded(
        "protobuf: entries of data",
        lambda n: _METADATA + b"".join(_field(2, _field(1, b"%d" % i) + _field(2, b"v")) for i in range(n)),
    ),
    _encoded("protobuf: empty entries", lambda n: _METADATA + b"\x12\0" * n),
    _encoded("protobuf: unknown fields", lambda n: _METADATA + b"\xf8\x3f\x01" * n),
    _encoded("protobuf: metadata again and again", lambda n: _METADATA * n),
    _encoded("protobuf: labels", lambda n: _field(1, b"".join(_field(11, _field(1, b"%d" % i)) for i in range(n)))),
    _encoded("protobuf: groups", lambda n: b"\xfb\x3f" * n),
    _encoded("protobuf: managed fields", lambda n: _field(1, _field(17, b"") * n)),
    _encoded("protobuf: one long value", lambda n: _METADATA + _field(2, _field(1, b"k") + _field(2, b"v" * n))),
    Case(
        "protobuf: garbage",
        "user",
        lambda n: Message("POST", CREATE, body=b"k8s\0" + b"\xff" * n, media_type=PROTOBUF),
        BODY,
    ),
    Case("unknown media type", "user", lambda n: Message("POST", CREATE, body=b"x" * n, media_type="a/b"), BODY),
    Case(
        "media type of many parameters",
        "user",
        lambda n: Message("POST", CREATE, body=b"{}", media_type=YAML + ";a=b" * n),
        1_000_000,
    ),
]
