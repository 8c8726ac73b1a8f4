"""Declarations of command-line flags as dataclass fields, and functions over options classes.

An options class consists of such fields. A field declares its flag once: name, default, help text, type of value, and
the programs that accept it. The command line, `/flagz` and docs/reference/all-flags.md follow from these declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from tetrapod.machinery.golang.durations import format_duration

T = TypeVar("T")

ALL: Final = frozenset({"aggregator", "core", "extensions", "auth", "up"})
"""The programs: the four services, each as a process of its own, and all of them in one process."""
SEPARATE: Final = ALL - {"up"}
AGGREGATOR: Final = frozenset({"aggregator", "up"})
CORE: Final = frozenset({"core", "up"})
AUTH: Final = frozenset({"auth", "up"})
_PASSWORD: Final = re.compile(r"//[^/@]*@")


class Kind(Enum):
    """The type of a flag's value, which decides how the text on the command line is parsed.

    Attributes:
        TEXT: a string, as it is.
        INTEGER: an integer.
        NUMBER: a float.
        SWITCH: a bool.
        DURATION: a float in seconds, written like Go's time.Duration.
        IP: a string with an IP address; an unspecified address is stored as "".
        PATH: the path of a file or directory.
        LIST: a tuple of strings, written with commas between them. The flag may be repeated.
        SETTINGS: a tuple of strings `name=value`, written with commas between them. The flag may be repeated.
        REPEATED: a tuple with one string for each time the flag is given; values may contain commas.
    """

    TEXT = "string"
    INTEGER = "int"
    NUMBER = "float"
    SWITCH = "bool"
    DURATION = "duration"
    IP = "ip"
    PATH = "path"
    LIST = "strings"
    SETTINGS = "key=value,..."
    REPEATED = "strings, repeated"


@dataclass(frozen=True, slots=True)
class Flag:
    """A command-line flag.

    Attributes:
        name: the name without dashes.
        help: the help text.
        kind: the type of its value.
        programs: the programs that accept it; None for those of the `group` of flags that contains it.
        section: its heading in `--help`; "" for that of the `group`.
        choices: the permitted values; empty for any.
        minimum: the smallest permitted integer; None for any.
    """

    name: str
    help: str
    kind: Kind
    programs: frozenset[str] | None = None
    section: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None


@dataclass(frozen=True, slots=True)
class _Group:
    section: str
    programs: frozenset[str] | None
    prefix: str


_KINDS: Final[Mapping[type, Kind]] = {
    str: Kind.TEXT,
    int: Kind.INTEGER,
    float: Kind.DURATION,
    bool: Kind.SWITCH,
    tuple: Kind.LIST,
}


def flag(
    name: str,
    default: object,
    help: str,
    *,
    kind: Kind | None = None,
    programs: frozenset[str] | None = None,
    section: str = "",
    choices: tuple[str, ...] = (),
    minimum: int | None = None,
) -> Any:
    """Return a dataclass field that is set by a flag.

    Args:
        name: the name without dashes.
        default: the default value.
        help: the help text.
        kind: the type of the value. None derives it from the type of `default`, where a float is a duration.
        programs: the programs that accept it; None for those of the group.
        section: the heading in `--help`; "" for that of the group.
        choices: the permitted values; empty for any.
        minimum: the smallest permitted integer; None for any.
    """
    if kind is None:
        kind = Kind.PATH if isinstance(default, Path) else _KINDS[type(default)]
    return field(default=default, metadata={"flag": Flag(name, help, kind, programs, section, choices, minimum)})


def group(default: T, section: str = "", *, programs: frozenset[str] | None = None, prefix: str = "") -> T:
    """Return a dataclass field that holds a group of flags.

    Args:
        default: an instance of the group's class, with the default values.
        section: the heading in `--help`, also of nested groups.
        programs: the programs that accept the flags, unless a flag says otherwise; None for those of the outer group.
        prefix: the beginning of the flags' names.
    """
    made: T = field(default=default, metadata={"group": _Group(section, programs, prefix)})
    return made


def declared_flags(
    options: Any, section: str = "", programs: frozenset[str] = ALL, prefix: str = ""
) -> Iterator[tuple[Flag, Any]]:
    """Yield the flags of an options object and of its groups with their present values, in the order of declaration.

    The flags have full names, sections and programs. The other arguments are for the recursion.
    """
    for item in fields(options):
        value = getattr(options, item.name)
        declared: Flag | None = item.metadata.get("flag")
        nested: _Group | None = item.metadata.get("group")
        if declared is not None:
            resolved = replace(
                declared,
                name=prefix + declared.name,
                programs=declared.programs or programs,
                section=declared.section or section,
            )
            yield resolved, value
        elif nested is not None:
            yield from declared_flags(
                value, nested.section or section, nested.programs or programs, prefix + nested.prefix
            )


def with_values(options: T, values: Mapping[str, object], prefix: str = "") -> T:
    """Return a copy of an options object in which some flags have other values.

    If nothing changes, the object itself is returned.

    Args:
        options: the options object.
        values: the values by flag name. Names of flags that it does not have are ignored.
        prefix: the beginning of the flags' names, for the recursion.
    """
    changes: dict[str, Any] = {}
    for item in fields(options):  # type: ignore[arg-type]
        value = getattr(options, item.name)
        declared: Flag | None = item.metadata.get("flag")
        nested: _Group | None = item.metadata.get("group")
        if declared is not None and prefix + declared.name in values:
            changes[item.name] = values[prefix + declared.name]
        elif nested is not None:
            changed = with_values(value, values, prefix + nested.prefix)
            if changed is not value:
                changes[item.name] = changed
    return replace(options, **changes) if changes else options  # type: ignore[type-var]


def format_value(declared: Flag, value: Any) -> str:
    """Return a value of a flag as /flagz shows it. Passwords in URLs become `***`."""
    if declared.kind is Kind.SWITCH:
        return str(value).lower()
    if declared.kind is Kind.DURATION:
        return format_duration(value)
    if declared.kind is Kind.NUMBER:
        return f"{value:g}"
    if declared.kind is Kind.SETTINGS:
        return ",".join(value)
    written = f"[{','.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
    return _PASSWORD.sub("//***@", written)
