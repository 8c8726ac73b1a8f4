"""The page about the path of a chosen request: its waterfall, or the reason why it cannot be shown."""

from __future__ import annotations

from html import escape

import orjson

from tetrapod.console.reads import Answer, error_message
from tetrapod.console.waterfall import document, page


def page_of_answer(path: str, answer: Answer) -> str:
    """Return the page for the response to a request with `trace=1`.

    Args:
        path: the path of the request.
        answer: the response. A server that offers no traces sends the response of the request itself.
    """
    if answer.status == 403:
        return page_of_error(path, f"You have no permission for this trace: {error_message(answer)}")
    if answer.status != 200:
        return page_of_error(path, f"The server answered {answer.status}, without a trace: {error_message(answer)}")
    try:
        report = orjson.loads(answer.body)
    except ValueError:
        report = None
    if isinstance(report, dict) and "spans" in report and "traceID" in report:
        return page(report)
    text = "The server answered 200, but offers no traces. Tetrapod does, and a stock kube-apiserver does not."
    return page_of_error(path, text)


def page_of_error(path: str, message: str) -> str:
    """Return the page that says why the waterfall cannot be shown."""
    return document(f"GET {path}", f"<p class=error role=alert>{escape(message)}</p>")
