"""Validation of mail addresses as in Go: `a@b.c`, `A B <a@b.c>`, `"a b"@[10.0.0.1] (with a comment)`.

Upstream: Go's net/mail/message.go, ParseAddress.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from tetrapod.machinery.golang.ip_addresses import parse_strict

_SPECIALS: Final = frozenset('()<>[]:;@\\,"')
_ENCODED_WORD: Final = re.compile(r"=\?([^?]+)\?[bBqQ]\?[^?]*\?=")
_CHARSETS: Final = frozenset({"utf-8", "iso-8859-1", "us-ascii"})


class _Malformed(Exception):
    """The exception for a text that is not a mail address."""


def is_address(text: str) -> bool:
    """Return whether a text is one mail address, perhaps with a name and comments, and nothing else."""
    reader = _Reader(text)
    try:
        mailboxes = reader.address(groups=True)
        reader.skip_comments()
    except _Malformed:
        return False
    return reader.rest == "" and mailboxes == 1


class _Reader:
    """A recursive-descent parser of mail addresses as Go's net/mail accepts them.

    `rest` is the text that is left; each method removes from its front the part that it reads. The methods raise
    `_Malformed` if the text does not begin with that part.
    """

    def __init__(self, text: str) -> None:
        self.rest = text

    def address(self, *, groups: bool) -> int:
        """Read a mailbox, or also a group of mailboxes if `groups` is set, and return the number of mailboxes.

        Raises:
            _Malformed: the text does not begin with one.
        """
        self._skip_spaces()
        if not self.rest:
            raise _Malformed
        start = self.rest
        try:
            self._address_of_mailbox()
        except _Malformed:
            self.rest = start
        else:
            self._skip_spaces()
            if self._took("("):
                self._comment()
            return 1
        if not self.rest.startswith("<"):
            self._phrase()
        self._skip_spaces()
        if groups and self._took(":"):
            return self._group()
        self._need("<")
        self._address_of_mailbox()
        self._need(">")
        return 1

    def skip_comments(self) -> None:
        """Remove spaces and comments from the front of the text.

        Raises:
            _Malformed: a comment does not end.
        """
        self._skip_spaces()
        while self._took("("):
            self._comment()
            self._skip_spaces()

    def _group(self) -> int:
        self._skip_spaces()
        mailboxes = 0
        if not self._took(";"):
            while True:
                mailboxes += self.address(groups=False)
                self.skip_comments()
                if self._took(";"):
                    break
                self._need(",")
        self.skip_comments()
        return mailboxes

    def _address_of_mailbox(self) -> None:
        self._skip_spaces()
        if self.rest.startswith('"'):
            if not self._quoted():
                raise _Malformed
        else:
            self._dotted_atom()
        self._need("@")
        self._skip_spaces()
        if self._took("["):
            literal, closed, self.rest = self.rest.partition("]")
            if not closed or parse_strict(literal) is None:
                raise _Malformed
        else:
            self._dotted_atom()

    def _phrase(self) -> None:
        """Read the words of a name, up to the first text that is not a word. Nothing is read if no text is left.

        Raises:
            _Malformed: the text does not begin with a word.
        """
        words = 0
        while True:
            if words:
                self.skip_comments()
            self._skip_spaces()
            if not self.rest:
                return
            try:
                if self.rest.startswith('"'):
                    self._quoted()
                else:
                    encoded = _ENCODED_WORD.fullmatch(self._atom())
                    if encoded is not None and encoded[1].lower() not in _CHARSETS:
                        raise _Malformed
            except _Malformed:
                if not words:
                    raise
                return
            words += 1

    def _quoted(self) -> str:
        content = ""
        escaped = False
        for place, char in enumerate(self.rest[1:], 2):
            if not (_is_visible(char) or char in " \t"):
                break
            if not escaped and char == '"':
                self.rest = self.rest[place:]
                return content
            escaped = not escaped and char == "\\"
            if not escaped:
                content += char
        raise _Malformed

    def _dotted_atom(self) -> None:
        atom = self._atom()
        if atom.startswith(".") or atom.endswith(".") or ".." in atom:
            raise _Malformed

    def _atom(self) -> str:
        length = _length_while(self.rest, lambda char: char not in _SPECIALS and _is_visible(char))
        if not length:
            raise _Malformed
        atom, self.rest = self.rest[:length], self.rest[length:]
        return atom

    def _comment(self) -> None:
        """Read the rest of a comment after its opening parenthesis. It may contain comments.

        Raises:
            _Malformed: the comment does not end.
        """
        depth, place = 1, 0
        while depth and place < len(self.rest):
            char = self.rest[place]
            if char == "\\" and place + 1 < len(self.rest):
                place += 1
            else:
                depth += (char == "(") - (char == ")")
            place += 1
        if depth:
            raise _Malformed
        self.rest = self.rest[place:]

    def _took(self, char: str) -> bool:
        if not self.rest.startswith(char):
            return False
        self.rest = self.rest[1:]
        return True

    def _need(self, char: str) -> None:
        if not self._took(char):
            raise _Malformed

    def _skip_spaces(self) -> None:
        self.rest = self.rest.lstrip(" \t")


def _is_visible(char: str) -> bool:
    return "!" <= char <= "~" or char >= "\x80"


def _length_while(text: str, accepted: Callable[[str], bool]) -> int:
    return next((place for place, char in enumerate(text) if not accepted(char)), len(text))
