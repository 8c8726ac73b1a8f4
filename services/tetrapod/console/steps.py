"""The kinds of the steps of a trace, and the purpose of each filter.

The names of steps are those of the spans (`generic/filters/chain.py`, and `traced` and `start` in other modules).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from tetrapod.generic.observability.tracing.report import Row


class StepKind(StrEnum):
    """The kind of a step; the value is its CSS class."""

    FILTER = "filter"
    SERVICE = "service"
    VERB = "verb"
    ADMISSION = "admission"
    REGISTRY = "registry"
    STORAGE = "storage"
    RESPONSE = "response"


KIND_TITLES: Final = {
    StepKind.FILTER: "Filters",
    StepKind.SERVICE: "Between services",
    StepKind.VERB: "Verb and other code",
    StepKind.ADMISSION: "Admission",
    StepKind.REGISTRY: "Registry",
    StepKind.STORAGE: "Storage and watch cache",
    StepKind.RESPONSE: "Response",
}

_PREFIXES: Final = (
    (StepKind.SERVICE, ("service ", "HTTP ", "Proxy via ")),
    (StepKind.ADMISSION, ("admission ", "policy ", "Call validating webhook", "Call mutating webhook")),
    (StepKind.REGISTRY, ("registry ", "before ")),
    (
        StepKind.STORAGE,
        ("cacher.", "sqlite ", "etcdserverpb.", "waiting for the latest revision", "TransformFrom", "TransformTo"),
    ),
    (StepKind.RESPONSE, ("SerializeObject", "writing the answer")),
)

PURPOSES: Final = {
    "fair-scheduling": "Shares the event loop of a service among the users whose requests the aggregator forwards.",
    "audit-id": "Sets the header Audit-Id: the client's, or a new one.",
    "requestinfo": "Parses the path into verb, group, version, resource, namespace and name.",
    "metrics": "Counts, measures and logs the request, and rejections too.",
    "cachecontrol": "Adds Cache-Control: no-cache, private.",
    "hsts": "Adds Strict-Transport-Security if it is configured.",
    "goaway": "Asks some HTTP/2 clients to connect again, which balances them between replicas.",
    "errors": "Turns an error of a later step into a response.",
    "warnings": "Writes Warning headers.",
    "draining": "Counts requests in flight, and rejects new ones during shutdown.",
    "cors": "Answers preflight requests of browsers, which have no credentials.",
    "rejection-audit": "Audits requests that are rejected before the user is known.",
    "deadline": "Limits the time of the request.",
    "authentication": "Finds out who sends the request, by client certificate or token.",
    "audit": "Records the request as the audit policy demands.",
    "audit-findings": "Returns audit data to the aggregator, which writes the events.",
    "impersonation": "Replaces the user if the headers ask for that and the user may do it.",
    "priorityandfairness": "Finds the flow schema and priority level, and queues the request if all seats are taken.",
    "maxinflight": "Rejects the request if too many are in flight.",
    "authorization": "Asks the authorizers whether the user may do it.",
    "storageversions": "Lets writes wait until the server has reported its storage versions.",
    "compression": "Compresses a large response if the client accepts that.",
}
"""The purpose of each filter, by its name."""


def kind_of(row: Row) -> StepKind:
    """Return the kind of a step, by its name."""
    if row.filter:
        return StepKind.FILTER
    for kind, prefixes in _PREFIXES:
        if row.name.startswith(prefixes):
            return kind
    return StepKind.STORAGE if row.name.endswith(" etcd3") else StepKind.VERB


def purpose_of(row: Row) -> str:
    """Return the purpose of a filter; "" for a step of another kind."""
    return PURPOSES.get(row.name, "") if row.filter else ""
