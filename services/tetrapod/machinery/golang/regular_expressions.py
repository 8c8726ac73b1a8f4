"""Regular expressions in Go's dialect, compiled by google-re2, with Go's error texts. Matching takes linear time.

CEL and the keyword `pattern` of schemas use them.

Upstream: Go's package regexp.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tetrapod.machinery.boundedcache import bounded

_INSTRUCTION: Final = 40
"""Bytes of a compiled pattern for each instruction of its program: `\\pL{400}` has 478,000, and takes 19 MB."""
_LARGEST: Final = 24 << 20
"""Bytes of the largest cached pattern. RE2 compiles none that is larger."""

_MAX_OPTIONAL: Final = 10_000
"""The most optional parts of a pattern. RE2 takes 0.3 s to compile so many, quadratic time for more, and holds the
interpreter's lock. Go has no such limit.
"""
_STEP_SECONDS: Final = 25e-9
"""The longest time that RE2 was measured to take for one character and one instruction: `[ab]*a[ab]{30}c`."""
_TOKEN: Final = re.compile(
    r"(?P<atom>\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*+\]|[^\\\[(){?]++)"
    r"|(?P<open>\(\??)|(?P<close>\))|\{(?P<least>\d{1,4})(?:,(?P<most>\d{0,4}))?\}|(?P<optional>\?)|\{",
    re.DOTALL | re.ASCII,
)


class BadPattern(ValueError):
    """The error for an invalid pattern. The text is Go's: ``error parsing regexp: missing closing ): `(` ``."""


def _weight(pattern: str, compiled: Any) -> int:
    return len(pattern) + int(compiled.programsize) * _INSTRUCTION + 2048


@bounded(count=1024, size=64 << 20, largest=_LARGEST, weigh_entry=_weight)
def compile_pattern(pattern: str) -> Any:
    r"""Compile a pattern, or return the cached one. Its `search` method is like that of `re`, but captures no groups.

    Other threads and the event loop wait until a pattern is compiled, because RE2 does not release the interpreter's
    lock. Compiling `\pL{400}` takes 0.3 s.

    Raises:
        BadPattern: the pattern is invalid.
    """
    import re2  # takes 4 MB of memory, which services without custom resources may not need

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    if match := re.search(r"(?<!\\)(?:\\\\)*\\C", pattern):
        raise BadPattern(f"error parsing regexp: invalid escape sequence: `{match[0][-2:]}`")
    if optional_parts(pattern) > _MAX_OPTIONAL:
        raise BadPattern(f"error parsing regexp: expression too large: `{pattern}`")
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0]
        raise BadPattern(_in_go_words(text.decode() if isinstance(text, bytes) else str(text), pattern)) from None
    re2.purge()  # its own cache, of 128 patterns of any size
    return compiled


def search_seconds(compiled: Any, text: str) -> float:
    """Return the longest time in seconds that a search may take. RE2 releases the interpreter's lock during the search.

    Args:
        compiled: the result of `compile_pattern`.
        text: the text to search.
    """
    return float(len(text) * compiled.programsize * _STEP_SECONDS)


def optional_parts(pattern: str) -> int:
    """Return how many optional parts a pattern has after its repetitions are expanded: `(a?b{1,3}){5}` has 15.

    Counting ends beyond `_MAX_OPTIONAL`, and at an unterminated character class, because RE2 rejects such a pattern.
    """
    groups, last, at = [0], 0, 0
    while token := _TOKEN.match(pattern, at):
        at = token.end()
        if token["open"]:
            groups.append(0)
        elif token["close"]:
            last = groups.pop() if len(groups) > 1 else 0
            groups[-1] += last
        elif token["least"] or token["optional"]:
            least = int(token["least"] or 0)
            most = int(token["most"] or least) if token["least"] else 1
            added = last * (max(most, 1) - 1) + max(most - least, 0)
            groups[-1] += added
            last += added
            if groups[-1] > _MAX_OPTIONAL:  # nested repetitions multiply without end
                break
        else:
            last = 0
    return sum(groups)


def _in_go_words(text: str, pattern: str) -> str:
    """Return Go's text for an error text of RE2: "error parsing regexp: missing closing ): `(`" for `missing ): (`.

    Args:
        text: the error text of RE2.
        pattern: the whole pattern, which Go quotes for unbalanced parentheses.
    """
    reason, _, argument = text.partition(": ")
    texts = {
        "missing )": ("missing closing )", pattern),
        "unexpected )": ("unexpected )", pattern),
        "missing ]": ("missing closing ]", argument),
        "invalid perl operator": ("invalid or unsupported Perl syntax", argument),
        "bad repetition operator": ("invalid nested repetition operator", argument),
        "no argument for repetition operator": ("missing argument to repetition operator", argument),
        "invalid repetition size": ("invalid repeat count", argument),
        "trailing \\": ("trailing backslash at end of expression", ""),
        "invalid named capture group": ("invalid named capture", argument),
    }
    reason, argument = texts.get(reason, (reason, argument))
    if reason == "invalid escape sequence" or argument:
        return f"error parsing regexp: {reason}: `{argument}`"
    return f"error parsing regexp: {reason}: ``"
