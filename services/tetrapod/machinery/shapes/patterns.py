"""Regular expressions in Go's dialect, by google-re2: linear time, and refused with Go's words.

Upstream: Go's regexp package, which the `pattern` keyword, CEL and label rules speak.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any


class BadPattern(ValueError):
    """The text is Go's: ``error parsing regexp: missing closing ): `(` ``."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """A compiled pattern with `search`. Raises BadPattern."""
    import re2  # takes 4 MB, and services without custom resources may never need it

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    if match := re.search(r"(?<!\\)(?:\\\\)*\\C", pattern):
        raise BadPattern(f"error parsing regexp: invalid escape sequence: `{match[0][-2:]}`")
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        text = error.args[0]
        raise BadPattern(_in_go_words(text.decode() if isinstance(text, bytes) else str(text), pattern)) from None


def _in_go_words(text: str, pattern: str) -> str:
    """RE2 says `missing ): (`, Go "missing closing ): `(`"."""
    reason, _, argument = text.partition(": ")
    words = {
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
    reason, argument = words.get(reason, (reason, argument))
    if reason == "invalid escape sequence" or argument:
        return f"error parsing regexp: {reason}: `{argument}`"
    return f"error parsing regexp: {reason}: ``"
