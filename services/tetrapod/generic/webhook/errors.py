"""What can go wrong with a webhook (upstream: k8s.io/apiserver/pkg/util/webhook/error.go)."""

from __future__ import annotations


class CallFailed(Exception):
    """No usable answer; the text is what comes after `failed to call webhook: `. `code` is what metrics say of it."""

    def __init__(self, text: str, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


class Unusable(Exception):
    """A client configuration that nobody could be called with."""
