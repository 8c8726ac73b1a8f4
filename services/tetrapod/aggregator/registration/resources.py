"""The definition of the resource `apiservices.apiregistration.k8s.io` and its table columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.aggregator.apiservice import AVAILABLE, GROUP, service_of
from tetrapod.aggregator.registration.strategy import APIServiceStatusStrategy, APIServiceStrategy
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor
from tetrapod.machinery.timed_cells import since

STORAGE_PREFIX: Final = f"{GROUP}/apiservices"


def definitions(on_delete: Callable[[str], None] = lambda name: None) -> list[ResourceDefinition]:
    """Return the definition of `apiservices`, the only resource of the aggregator.

    Args:
        on_delete: called with the name of each deleted APIService, before the response is written.
    """
    strategy = APIServiceStrategy(on_delete)
    status = APIServiceStatusStrategy(strategy)
    return [
        builtin(
            GROUP, "apiservices", strategy, storage_prefix=STORAGE_PREFIX, table=TABLE, subresources={"status": status}
        )
    ]


def _row(obj: Object) -> list[Any]:
    service = service_of(obj)
    location = "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"
    return [obj["metadata"].get("name", ""), location, _available(obj), since(obj["metadata"].get("creationTimestamp"))]


def _available(obj: Object) -> str:
    available = find_condition(obj, AVAILABLE)
    if available is None:
        return "Unknown"
    status: str = available["status"]
    reason = available.get("reason")
    return status if status == "True" or not reason else f"{status} ({reason})"


TABLE: Final = TableConvertor(
    [
        Column("Name", format="name"),
        Column("Service"),
        Column("Available"),
        Column("Age"),
    ],
    _row,
    repeats_columns=True,
)
