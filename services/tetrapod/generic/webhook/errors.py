"""Errors of webhook calls (upstream: k8s.io/apiserver/pkg/util/webhook/error.go)."""

from __future__ import annotations


class CallFailed(Exception):
    """No usable response. The text follows `failed to call webhook: `; metrics show `code`."""

    def __init__(self, text: str, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


class Unusable(Exception):
    """A client configuration that cannot be used for calls."""
