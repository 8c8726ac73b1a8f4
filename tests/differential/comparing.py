"""Compare the responses of both servers, and name each difference by a signature."""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from contract import golden
from differential.servers import Answer, Pair, perform

Step = dict[str, Any]
Names = tuple[dict[str, str], dict[str, str]]
_AGAIN: Final = 2
_AGAIN_FOR_ORDER: Final = 60
"""How often the original is asked again, to find what it answers in random order, and if only the order differs.

The order is that of a Go map. A map of three fields has the same first element in six of eight iterations.
"""
_CONTROLLERS: Final = 4.0
"""Seconds that the controllers of both servers have to act on an object before its state is compared."""
_LONG: Final = 160
"""Characters of an excerpt."""
_LEAST: Final = 4
"""Characters that a saved value must have at least. A shorter one also occurs in other text by chance."""
_CERTIFICATE: Final = re.compile(r"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----")
_PROTOBUF: Final = "k8s\0"
"""Begins a body in protobuf."""
_NODE_PORT: Final = re.compile(r"(\b[nN]odePort\W{1,6}|:)3[0-2]\d{3}\b")


@dataclass(frozen=True)
class Difference:
    """A request that both servers answered, but not equally.

    Attributes:
        signature: equal for differences that probably have the same cause.
        lines: the places where the responses differ.
    """

    signature: str
    step: Step
    lines: tuple[str, ...]
    origin: str


def compare(pair: Pair, step: Step, names: Names, origin: str, *, repeatable: bool) -> Difference | None:
    """Perform a step at both servers and return how the responses differ.

    Args:
        repeatable: whether the step changes nothing, so that the original may be asked again.
    """
    wanted, got = _asked(pair, step, names)
    lines = list(golden.compare(wanted, got))
    deadline = time.monotonic() + _CONTROLLERS
    while lines and (repeatable or _is_rejected(wanted)) and time.monotonic() < deadline:
        time.sleep(0.1)
        wanted, got = _asked(pair, step, names)
        lines = list(golden.compare(wanted, got))
    if lines and (repeatable or _is_rejected(wanted)):
        wanted, got = _settled(pair, step, names, wanted, got)
        lines = list(golden.compare(wanted, got))
    if not lines or not wanted["status"]:  # the original panics at some requests
        return None
    return Difference(_signature(step, wanted, got, lines), step, (*lines, *_excerpts(wanted, got)), origin)


def _is_rejected(answer: Answer) -> bool:
    return answer["status"] in (400, 403, 422, 500)


def _settled(pair: Pair, step: Step, names: Names, wanted: Answer, got: Answer) -> tuple[Answer, Answer]:
    """Return the responses without what the original answers in random order."""
    again = _AGAIN if _ordered(wanted) != _ordered(got) else _AGAIN_FOR_ORDER
    others: list[Answer] = []
    while len(others) < again and (len(others) < _AGAIN or all(other == wanted for other in others)):
        others.append(_plain(perform(step, names[0], pair.original), _own(names, 0)))
    if all(other == wanted for other in others):
        return wanted, got
    return functools.reduce(golden.steady, map(_ordered, (wanted, *others))), _ordered(got)


def _asked(pair: Pair, step: Step, names: Names) -> tuple[Answer, Answer]:
    first, second = pair.both(step, names)
    return _plain(first, _own(names, 0)), _plain(second, _own(names, 1))


def _own(names: Names, side: int) -> dict[str, str]:
    """Return the saved values that differ between the servers, with the names under which they are saved."""
    return {
        value: name
        for name, value in names[side].items()
        if len(value) >= _LEAST and names[1 - side].get(name) not in (None, value)
    }


def _plain(value: Any, own: dict[str, str]) -> Any:
    """Return a response without allocated ports and without the saved values that only one server has."""
    if isinstance(value, dict):
        return {key: _plain(member, own) for key, member in value.items()}
    if isinstance(value, list):
        return [_plain(element, own) for element in value]
    if not isinstance(value, str):
        return value
    if value.startswith(_PROTOBUF):  # its fields are in another order
        return _PROTOBUF
    for text, name in own.items():
        value = value.replace(text, f"{{{name}}}")
    return _CERTIFICATE.sub("<certificate>", _NODE_PORT.sub(r"\1<nodePort>", value))


def _excerpts(wanted: Answer, got: Answer) -> Iterator[str]:
    """Yield where two long messages begin to differ."""
    theirs, own = _message(wanted), _message(got)
    if theirs != own and min(len(theirs), len(own)) > _LONG:
        begin = next(
            (i for i, (a, b) in enumerate(zip(theirs, own, strict=False)) if a != b), min(len(theirs), len(own))
        )
        begin = max(0, begin - 50)
        yield f"from character {begin}: want {theirs[begin : begin + _LONG]!r}, got {own[begin : begin + _LONG]!r}"


def _ordered(answer: Answer) -> Answer:
    """Return a response with its causes in order and without the message, which has them in the original order."""
    body = answer["body"]
    if not isinstance(body, dict) or not isinstance(body.get("details"), dict) or "causes" not in body["details"]:
        return answer
    causes = sorted(body["details"]["causes"], key=lambda cause: json.dumps(cause, sort_keys=True))
    return answer | {"body": body | {"message": "", "details": body["details"] | {"causes": causes}}}


def _signature(step: Step, wanted: Answer, got: Answer, lines: list[str]) -> str:
    method, target = step["request"].split(" ", 1)
    resource = _resource(target.partition("?")[0])
    return f"{method} {resource}: {_cause(wanted, got, lines)}"


def _resource(path: str) -> str:
    """Return the resource and subresource of a path, without names."""
    parts = [part for part in path.split("/") if part]
    parts = parts[2:] if parts[:1] == ["api"] else parts[1:2] + parts[3:] if parts[:1] == ["apis"] else parts
    group = [parts.pop(0)] if path.startswith("/apis/") and parts else []
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return "/".join([*group, *parts[:1], *parts[2:3]])


def _cause(wanted: Answer, got: Answer, lines: list[str]) -> str:
    if wanted["status"] != got["status"]:
        failed = wanted if wanted["status"] == "<unstable>" or wanted["status"] >= 400 else got
        return f"{wanted['status']} wanted, got {got['status']}: {_pattern(_message(failed))}"
    theirs, own = _causes(wanted), _causes(got)
    if theirs or own:
        missing, further = sorted(theirs - own), sorted(own - theirs)
        if missing or further:
            return " ".join([*(f"-[{one}]" for one in missing[:2]), *(f"+[{one}]" for one in further[:2])])
    if wanted["status"] != "<unstable>" and wanted["status"] >= 400:
        return f"{wanted['status']} {_pattern(_message(wanted))} / {_pattern(_message(got))}"
    return "; ".join(sorted({_pattern(line.partition(":")[0]) for line in lines})[:3])


def _message(answer: Answer) -> str:
    body = answer["body"]
    message = body.get("message", body) if isinstance(body, dict) else body
    return message if isinstance(message, str) else json.dumps(message)


def _causes(answer: Answer) -> set[str]:
    body = answer["body"]
    details = body.get("details") if isinstance(body, dict) and body.get("kind") == "Status" else None
    causes = details.get("causes") if isinstance(details, dict) else None
    if not isinstance(causes, list):
        return set()
    return {_pattern(f"{cause.get('field')}: {cause.get('message')}") for cause in causes if isinstance(cause, dict)}


def _pattern(text: str) -> str:
    """Return a text without what varies from case to case: quoted values, indexes, keys, numbers."""
    text = re.sub(r'"(\\.|[^"\\])*"', '"…"', text)
    text = re.sub(r"[{\[].*[}\]]", "{…}", text) if len(text) > 300 else text
    text = re.sub(r"\[[^\]]*\]", "[]", text)
    return re.sub(r"\d+", "N", text)[:170]
