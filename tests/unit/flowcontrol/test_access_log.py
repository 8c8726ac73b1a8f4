"""Checks that the access log line of a request has upstream's fields, in upstream's order."""

from __future__ import annotations

import logging

import pytest

from tetrapod.generic.filters import access_log
from tetrapod.generic.flowcontrol.controller import FlowControl
from tetrapod.generic.flowcontrol.work_estimator import Estimate
from tetrapod.generic.http.request import Request
from tetrapod.generic.observability.logs import ACCESS
from tetrapod.machinery import requestinfo
from tetrapod.machinery.user import UserInfo


@pytest.fixture
def request_of_bob() -> Request:
    request = Request("GET", "/api/v1/pods", query_string="limit=1", headers=[(b"user-agent", b"tests")])
    request.info = requestinfo.parse("GET", "/api/v1/pods", "limit=1")
    request.user = UserInfo("bob", "", ("b",), {})
    request.audit_id, request.remote = "an-id", "192.0.2.1"
    return request


def _line(caplog: pytest.LogCaptureFixture, request: Request, code: int) -> list[tuple[str, object]]:
    with caplog.at_level(logging.INFO, ACCESS):
        access_log.log(access_log.request_fields(request), code, 0.0015)
    record = caplog.records[-1]
    standard = set(logging.makeLogRecord({}).__dict__) | {"message", "taskName"}
    return [(key, value) for key, value in record.__dict__.items() if key not in standard]


def test_an_access_log_line_has_flow_seats_and_impersonator(
    caplog: pytest.LogCaptureFixture, request_of_bob: Request
) -> None:
    request = request_of_bob
    assert request.info is not None
    request.state["impersonator"] = UserInfo("admin", "", ("system:masters", "x"), {})
    flow = FlowControl(10).classify(request.user, request.info)
    access_log.add_flow(request, flow, Estimate(1, 2, 0.005))
    access_log.add_duration(request, "apf_execution_time", 0.25)
    assert _line(caplog, request, 200) == [
        ("verb", "LIST"),
        ("URI", "/api/v1/pods?limit=1"),
        ("latency", "1.5ms"),
        ("userAgent", "tests"),
        ("contentType", ""),
        ("audit-ID", "an-id"),
        ("srcIP", "192.0.2.1"),
        ("user", "bob"),
        ("apf_pl", flow.labels[0]),
        ("apf_fs", flow.labels[1]),
        ("apf_iseats", 1),
        ("apf_fseats", 2),
        ("apf_additionalLatency", "5ms"),
        ("apf_execution_time", "250ms"),
        ("resp", 200),
        ("addedInfo", "admin[system:masters,x] is impersonating bob[b]"),
    ]


def test_a_connection_that_was_handed_over_has_no_code(
    caplog: pytest.LogCaptureFixture, request_of_bob: Request
) -> None:
    access_log.add_duration(request_of_bob, "apf_execution_time", 1.0)  # one that waits nowhere
    line = dict(_line(caplog, request_of_bob, 101))
    assert line["hijacked"] is True and not {"resp", "apf_execution_time"} & line.keys()
