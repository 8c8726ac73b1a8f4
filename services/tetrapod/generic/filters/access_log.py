"""The access log line `HTTP` of each request, at -v 3 and above.

Upstream: staging/src/k8s.io/apiserver/pkg/server/httplog, and the filters that add fields to it
"""

from __future__ import annotations

import logging
from typing import Any, Final

from tetrapod.generic.flowcontrol.controller import Flow
from tetrapod.generic.flowcontrol.work_estimator import Estimate
from tetrapod.generic.http.request import Request
from tetrapod.generic.observability.logs import ACCESS
from tetrapod.generic.observability.request_metrics import verb_of
from tetrapod.machinery.golang.durations import format_duration
from tetrapod.machinery.user import UserInfo

_access: Final = logging.getLogger(ACCESS)
_FLOW_FIELDS: Final = "access log"
_LONGEST: Final = 64


def is_enabled() -> bool:
    """Return whether access log lines are written, which the verbosity decides."""
    return _access.isEnabledFor(logging.INFO)


def add_flow(request: Request, flow: Flow, work: Estimate) -> None:
    """Add the priority level, the flow schema and the estimated seats to the request's access log line."""
    level, schema = flow.labels
    request.state[_FLOW_FIELDS] = {
        "apf_pl": level[:_LONGEST],
        "apf_fs": schema[:_LONGEST],
        "apf_iseats": work.initial,
        "apf_fseats": work.final,
        "apf_additionalLatency": format_duration(work.linger),
    }


def add_duration(request: Request, name: str, seconds: float) -> None:
    """Add the field `name` with a duration to the request's access log line.

    Do nothing without `add_flow`. The filter of API priority and fairness calls it if access log lines are written, for
    all requests except long-running ones that are not watches.

    Args:
        request: the request.
        name: the name of the field.
        seconds: the duration.
    """
    if (flow_fields := request.state.get(_FLOW_FIELDS)) is not None:
        flow_fields[name] = format_duration(seconds)


def request_fields(request: Request) -> dict[str, Any]:
    """Return the fields of the request's access log line, by name; `log` adds the status and the latency."""
    verb = verb_of(request)
    fields: dict[str, Any] = {
        "verb": verb if verb != "other" else request.method,  # "other" is only for metric labels
        "URI": f"{request.raw_path}?{request.query_string}" if request.query_string else request.raw_path,
        "latency": "",
        "userAgent": request.header(b"user-agent"),
        "contentType": request.header(b"content-type"),
        "audit-ID": request.audit_id,
        "srcIP": request.remote,
        "user": request.user.name,
        **request.state.get(_FLOW_FIELDS, {}),
    }
    if (impersonator := request.state.get("impersonator")) is not None:
        fields["addedInfo"] = f"{_user_text(impersonator)} is impersonating {_user_text(request.user)}"
    if request.trace_id:
        fields["traceID"] = request.trace_id
    return fields


def log(fields: dict[str, Any], code: int, seconds: float) -> None:
    """Write an access log line.

    Args:
        fields: the result of `request_fields`, which is changed.
        code: the status of the response; 101 for a hijacked connection.
        seconds: the latency.
    """
    if code == 101:
        fields["hijacked"] = True
    else:
        fields["resp"] = code
        if (info := fields.pop("addedInfo", None)) is not None:
            fields["addedInfo"] = info
    fields["latency"] = format_duration(seconds)
    _access.info("HTTP", extra=fields)


def _user_text(user: UserInfo) -> str:
    return f"{user.name}[{','.join(user.groups)}]" if user.groups else user.name
