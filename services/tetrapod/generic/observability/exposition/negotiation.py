"""The negotiation of the format of metrics (upstream: prometheus/common/expfmt/encode.go, Negotiate)."""

from __future__ import annotations

from typing import Final, NamedTuple

from tetrapod.generic.http.negotiation.accept import parse_accept

_MESSAGE: Final = "io.prometheus.client.MetricFamily"
_ENCODINGS: Final = ("delimited", "text", "compact-text")
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")


class Form(NamedTuple):
    """A format: text, or protobuf in one of its encodings."""

    encoding: str
    """The encoding of protobuf; "" for text."""
    content_type: str


def negotiate(accept: str) -> Form:
    """Return the format for an Accept header; text if it accepts none. Names are the same in every escaping scheme."""
    escaping = "underscores"
    for clause in parse_accept(accept):
        parameters = dict(clause.parameters)
        if parameters.get("escaping") in _ESCAPINGS:
            escaping = parameters["escaping"]
        media_type = f"{clause.type}/{clause.subtype}"
        if (
            media_type == "application/vnd.google.protobuf"
            and parameters.get("proto") == _MESSAGE
            and parameters.get("encoding") in _ENCODINGS
        ):
            encoding = parameters["encoding"]
            return Form(encoding, f"{media_type}; proto={_MESSAGE}; encoding={encoding}; escaping={escaping}")
        if media_type == "text/plain" and parameters.get("version", "") in ("", "0.0.4"):
            break
    return Form("", f"text/plain; version=0.0.4; charset=utf-8; escaping={escaping}")
