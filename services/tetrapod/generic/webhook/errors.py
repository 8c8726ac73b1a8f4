"""Errors of webhook calls (upstream: k8s.io/apiserver/pkg/util/webhook/error.go)."""

from __future__ import annotations


class CallFailed(Exception):
    """The error of a call without a usable response.

    The text follows `failed to call webhook: ` in messages. `code` is the HTTP status for metrics.
    """

    def __init__(self, text: str, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


class Unusable(Exception):
    """The error of a `clientConfig` that cannot be used for calls."""
