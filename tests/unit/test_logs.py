"""Tests of log lines: in klog's format, which collectors of Kubernetes' logs parse, or one JSON object each with zap's
keys.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

import orjson
import pytest

from tetrapod.generic.observability.logs import ACCESS, JSONFormatter, TextFormatter

KLOG = re.compile(
    r"(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d{6} {1,7}(?P<process>\d+) (?P<file>[^:]+):(?P<line>\d+)\] (?P<text>.*)",
    re.DOTALL,
)


def _record(level: int, message: str, name: str = "tetrapod.core", **more: Any) -> logging.LogRecord:
    return logging.getLogger(name).makeRecord(name, level, "/srv/core/service.py", 12, message, (), None, extra=more)


@pytest.mark.parametrize(
    ("level", "letter"),
    [(logging.DEBUG, "I"), (logging.INFO, "I"), (logging.WARNING, "W"), (logging.ERROR, "E"), (logging.CRITICAL, "F")],
)
def test_a_text_line_begins_as_klogs(level: int, letter: str) -> None:
    found = KLOG.fullmatch(TextFormatter().format(_record(level, "it's done")))
    assert found is not None
    assert (found["level"], found["file"], found["line"], found["text"]) == (letter, "service.py", "12", "it's done")


def test_key_value_pairs_are_formatted_like_klogs() -> None:
    record = _record(
        logging.INFO, "HTTP", URI='/a?b="c"', resp=200, hijacked=True, none=None, share=0.5, stack="one\ntwo\n"
    )
    found = KLOG.fullmatch(TextFormatter().format(record))
    assert found is not None
    assert (
        found["text"]
        == '"HTTP" URI="/a?b=\\"c\\"" resp=200 hijacked=true none=null share=0.5 stack=<\n\tone\n\ttwo\n >'
    )


def test_json_has_the_keys_of_zap() -> None:
    line = orjson.loads(JSONFormatter().format(_record(logging.INFO, "HTTP", ACCESS, verb="GET")))
    assert (line["msg"], line["caller"], line["v"], line["verb"], line["level"]) == (
        "HTTP",
        "core/service.py:12",
        3,
        "GET",
        "info",
    )
    assert abs(line["ts"] / 1000 - _record(logging.INFO, "").created) < 600
    assert [
        orjson.loads(JSONFormatter().format(_record(level, "")))["v"] for level in (logging.DEBUG, logging.WARNING)
    ] == [4, 0]


def test_an_error_says_where_it_came_from() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        record = _record(logging.ERROR, "it broke")
        record.exc_info = sys.exc_info()
    line = orjson.loads(JSONFormatter().format(record))
    assert line["err"].endswith("ValueError: no") and "v" not in line
    assert TextFormatter().format(record).splitlines()[-1] == "ValueError: no"
