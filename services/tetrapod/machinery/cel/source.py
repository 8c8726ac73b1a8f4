"""Positions in an expression, and issues as cel-go prints them.

Upstream: cel-go common/error.go and common/errors.go.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tetrapod.machinery.cel.errors import CompileError, Issue

MAX_ISSUES = 100
_MAX_SNIPPET = 16384


class Source:
    """The text of an expression, and the offsets at which its lines begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0]
        for offset, char in enumerate(text):
            if char == "\n":
                self._starts.append(offset + 1)

    def issue(self, offset: int, message: str) -> Issue:
        """Return an issue for an error at an offset in code points.

        If the offset is negative, line and column are -1.
        """
        if offset < 0:
            return Issue(-1, -1, message)
        line = bisect_right(self._starts, offset)
        return Issue(line, offset - self._starts[line - 1], message)

    def error(self, issues: Sequence[Issue]) -> CompileError:
        """Return a CompileError with the first `MAX_ISSUES` issues, sorted by position.

        If there are more issues, the error's text ends with the number of those left out.
        """
        kept = sorted(issues[:MAX_ISSUES], key=lambda issue: (issue.line, issue.column))
        texts = [self._shown(issue) for issue in kept]
        if len(issues) > MAX_ISSUES:
            texts.append(f"{len(issues) - MAX_ISSUES} more errors were truncated")
        return CompileError(kept, "\n".join(texts))

    def _shown(self, issue: Issue) -> str:
        text = f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
        if not 1 <= issue.line <= len(self._starts) or not self.text:
            return text
        snippet = self._line(issue.line)
        if len(snippet.encode()) > _MAX_SNIPPET:
            return text
        snippet = snippet.replace("\t", " ")
        dots = "".join("．" if ord(char) > 127 else "." for char in snippet[: issue.column])
        wide = issue.column < len(snippet) and ord(snippet[issue.column]) > 127
        return f"{text}\n | {snippet}\n | {dots}{'＾' if wide else '^'}"

    def _line(self, number: int) -> str:
        start = self._starts[number - 1]
        return self.text[start : self._starts[number] - 1] if number < len(self._starts) else self.text[start:]
