"""Objects in protobuf and YAML: with a mutation, with damaged bytes, and with unusual scalars of YAML."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from typing import Any, Final

import yaml

from contract import golden
from differential.corpus import Example, examples
from differential.mutations import sample
from differential.paths import nodes, replaced, text
from differential.report import Report
from differential.requests import Step, with_query
from differential.scenes import Scene, scene
from differential.schemas import Schemas
from differential.servers import Pair
from tetrapod.machinery import protobuf

NAME: Final = "encodings"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_YAML: Final = "application/yaml"
_VALIDATIONS: Final = ("fieldValidation=Strict", "fieldValidation=Warn", "fieldValidation=Ignore")
_MARK: Final = "placeOfTheScalar"
_SCALARS: Final = (
    *(
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "~",
        "null",
        "Null",
        "NULL",
        "True",
        "TRUE",
        "tRue",
        "''",
        '""',
        "|",
        ">",
        "-",
    ),
    *("0x10", "0o7", "07", "0b11", "1_000", "_1", "1_", "+1", "-0", "1.", ".5", "1e3", "1E3", "1e400", ".inf", "-.INF"),
    *(".nan", "12:30:45", "190:20:30", "1.0", "0.1e1", "9223372036854775808", "-9223372036854775809", "1e-7", "0x"),
    *("2001-01-01", "2001-01-01T00:00:00Z", "2001-01-01 00:00:00", "!!str 1", "!!int '1'", "!!float 1", "!!bool 'yes'"),
    *("!!binary QUJD", "!!binary 'A'", "!!null x", "!!timestamp 2001-01-01", "!x 1", "!<tag:yaml.org,2002:str> 1"),
    *("*nope", "&a 1", "[a, b]", "{a: b}", "[a, ", "{a", "'a", '"\\x41"', '"\\q"', '"\\u00e9"', "'it''s'", "%a", "@a"),
    *("`a`", "a: b", "a #b", "a#b", "? a", "<<", "=", "é", "\u2028", "\ufeff", "1\n  2", "|\n  a\n  b", ">-\n  a\n  b"),
)
_RAW_BYTES: Final = (
    *(b"\x00", b"\x07", b"\x0a\x00", b"\x0a\x05a", b"\x80", b"\xff" * 10 + b"\x01", b"\xff" * 11, b"\x0b", b"\x0c"),
    *(b"\xfa\x01\x01a", b"\xf8\xff\xff\xff\x0f\x01", b"\x0d\x01\x02\x03\x04", b"\x09" + b"\x01" * 8, b"\x0b\x0c"),
    *(
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a" + b"\xff" * 9 + b"\x01",
        b"\xfa\x7f\x02ab",
        b"\x12\x02\x0a\x00",
        b"\x08\x80\x01",
    ),
)


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Create each example `count` times in YAML and in protobuf, store it, and update it as often."""
    with scene(pair, {"name": "differential-encodings"}) as at:
        for number, example in enumerate(examples(schemas, only)):
            rng = random.Random(f"{seed} encodings {example.collection} {number}")
            request = with_query(f"POST {example.collection}", "dryRun=All")
            for step in _steps(at, request, example.body, schemas, rng, count):
                report.add(NAME, at.ask(step))
            report.add(NAME, at.perform(_created(at, example, rng)))
            stored = at.stored(example.path)
            if stored is not None:
                for step in _steps(at, f"PUT {example.path}?dryRun=All", stored, schemas, rng, count):
                    report.add(NAME, at.ask(step))
            for form in (_PROTOBUF, _YAML):
                report.add(NAME, at.ask({"request": f"GET {example.path}", "headers": {"Accept": form}}))
            at.remove(example.path)


def _created(at: Scene, example: Example, rng: random.Random) -> Step:
    """Return the creation of an example, in protobuf if its kind has a message."""
    message = _message(golden.fill(example.body, at.names[0]))
    step: Step = {"request": f"POST {example.collection}"}
    if message is None or rng.random() < 0.3:
        return step | {"body": example.body}
    return step | _of_bytes(message)


def _steps(
    at: Scene, request: str, body: dict[str, Any], schemas: Schemas, rng: random.Random, count: int
) -> Iterator[Step]:
    body = golden.fill(body, at.names[0])
    for mutation in sample(body, schemas, schemas.of(body), rng, count):
        changed = mutation.apply(body)
        target = with_query(request, rng.choice(_VALIDATIONS)) if rng.random() < 0.5 else request
        about = str(mutation)
        yield {"request": target, **_of_text(_as_yaml(changed, rng)), "about": f"YAML {about}"}
        message = _message(changed)
        if message is not None:
            accept = {"Accept": _PROTOBUF} if rng.random() < 0.3 else {}
            yield {"request": target, **_of_bytes(message, accept), "about": f"protobuf {about}"}
    message = _message(body)
    for _ in range(count):
        target = with_query(request, rng.choice(_VALIDATIONS)) if rng.random() < 0.5 else request
        content, about = _with_scalar(body, rng)
        yield {"request": target, **_of_text(content), "about": about}
        if message is not None:
            yield {"request": target, **_of_bytes(_damaged(message, rng)), "about": "damaged protobuf"}


def _of_text(content: str) -> Step:
    return {"raw": content, "headers": {"Content-Type": _YAML}}


def _of_bytes(content: bytes, headers: dict[str, str] | None = None) -> Step:
    return {
        "base64": base64.b64encode(content).decode(),
        "headers": {"Content-Type": _PROTOBUF, **(headers or {})},
    }


def _message(body: Any) -> bytes | None:
    """Return an object in protobuf, or None if its values do not fit the fields of its message."""
    try:
        return protobuf.encode(body)
    except (protobuf.UnknownMessageError, protobuf.DecodeError, TypeError, ValueError, AttributeError, KeyError):
        return None


def _as_yaml(body: Any, rng: random.Random) -> str:
    return yaml.safe_dump(
        body,
        default_flow_style=rng.choice((None, False, True)),
        default_style=rng.choice((None, None, None, '"', "'", "|", ">")) if rng.random() < 0.2 else None,
        allow_unicode=rng.random() < 0.5,
        explicit_start=rng.random() < 0.3,
        explicit_end=rng.random() < 0.1,
        indent=rng.choice((2, 4, 8)),
        width=rng.choice((20, 80, 1000)),
        line_break=rng.choice(("\n", "\n", "\n", "\r\n", "\r")),
        sort_keys=rng.random() < 0.5,
    )


def _with_scalar(body: Any, rng: random.Random) -> tuple[str, str]:
    """Return a body in YAML with an unusual scalar in one place, and the description of the place."""
    places = [path for path, node in nodes(body) if path and not isinstance(node, (dict, list))]
    path, scalar = rng.choice(places), rng.choice(_SCALARS)
    content = yaml.safe_dump(replaced(body, path, _MARK), sort_keys=rng.random() < 0.5).replace(_MARK, scalar)
    if rng.random() < 0.1:
        content += rng.choice(
            ("---\n", "...\n", "---\na: b\n", "...\na: b\n", "# end", "\t", "- a\n", "a: b\n", "\x00")
        )
    return content, f"YAML {text(path)}: {scalar}"


def _damaged(message: bytes, rng: random.Random) -> bytes:
    """Return a message with one change: bytes inserted, removed or replaced, or its end cut off.

    Changed bytes stay ASCII, because errors quote other ones differently.
    """
    at = rng.randrange(len(protobuf.MAGIC) if rng.random() < 0.95 else 0, len(message))
    more = rng.choice(_RAW_BYTES)
    choice = rng.randrange(6)
    if choice == 0:
        return message[:at]
    if choice == 1:
        return message + more
    if choice == 2:
        return message[:at] + bytes([message[at] ^ 1 << rng.randrange(7)]) + message[at + 1 :]
    if choice == 3:
        return message[:at] + more + message[at:]
    if choice == 4:
        return message[:at] + message[at + rng.choice((1, 2, 3)) :]
    return message[:at] + bytes([rng.randrange(128)]) + message[at + 1 :]
