"""A scenario in progress at both servers: its namespace and the values it has saved."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from contract import golden
from differential.comparing import Difference, Names, Step, compare
from differential.servers import PATIENCE, Answer, Pair

_KEPT: Final = ("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "generation")
"""The members of metadata that a client may send."""
_CONTROLLED: Final = frozenset(
    {
        *("apiservices", "clusterroles", "customresourcedefinitions", "flowschemas", "namespaces", "nodes"),
        *("persistentvolumeclaims", "persistentvolumes", "prioritylevelconfigurations", "resourcequotas", "secrets"),
        *("serviceaccounts", "servicecidrs", "validatingadmissionpolicies"),
    }
)
"""The resources whose new objects a controller changes."""
_UNCHANGED: Final = 0.5
"""Seconds without a change after which the controllers have probably finished with an object."""


@dataclass(frozen=True)
class Scene:
    """A namespace at both servers, in which steps are performed."""

    pair: Pair
    names: Names
    origin: str

    def perform(self, step: Step, number: int | None = None) -> Difference | None:
        """Perform a step that changes something."""
        return compare(self.pair, step, self.names, self._named(number), repeatable=False)

    def ask(self, step: Step, number: int | None = None) -> Difference | None:
        """Perform a step that changes nothing."""
        return compare(self.pair, step, self.names, self._named(number), repeatable=True)

    def remove(self, path: str) -> None:
        """Delete an object with its finalizers, and wait until it has gone."""
        _, name = path.rsplit("/", 1)
        steps: list[Step] = [
            {"request": f"DELETE {path}?gracePeriodSeconds=0&propagationPolicy=Background"},
            {"request": f"PATCH {path}", "patch": "merge", "body": {"metadata": {"finalizers": None}}},
            {"request": f"GET {path}", "until_status": 404},
        ]
        if path == f"/api/v1/namespaces/{name}":
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            steps.insert(
                1, {"request": f"PUT {path}/finalize", "body": {**body, "spec": {"finalizers": ["kubernetes"]}}}
            )
        for step in steps:
            self.pair.both(step, self.names)

    def exists(self, path: str) -> bool:
        """Return whether both servers have an object."""
        return all(answer["status"] == 200 for answer in self.pair.both({"request": f"GET {path}"}, self.names))

    def stored(self, path: str) -> dict[str, Any] | None:
        """Return an object without what the servers choose, or None if it does not exist or the servers differ."""
        answers = self._settled(path)
        body = answers[0]["body"]
        if answers[0]["status"] != 200 or answers[1]["body"] != body:
            return None
        body = _without_placeholders(body)
        metadata = {key: value for key, value in body["metadata"].items() if key in _KEPT}
        return {**body, "metadata": metadata}

    def _settled(self, path: str) -> tuple[Answer, Answer]:
        """Read an object at both servers, after their controllers have acted on it.

        Otherwise runs with one seed would change different objects.
        """
        step = {"request": f"GET {path}"}
        answers = self.pair.both(step, self.names)
        if path.split("/")[-2] not in _CONTROLLED:
            return answers
        changed = time.monotonic()
        deadline = changed + PATIENCE
        while (now := time.monotonic()) < deadline and (answers[0] != answers[1] or now < changed + _UNCHANGED):
            time.sleep(0.1)
            latest = self.pair.both(step, self.names)
            if latest != answers:
                answers, changed = latest, time.monotonic()
        return answers

    def _named(self, number: int | None) -> str:
        return self.origin if number is None else f"{self.origin} step {number}"


@contextlib.contextmanager
def scene(pair: Pair, scenario: dict[str, Any]) -> Iterator[Scene]:
    """Prepare a scenario at both servers, and tidy up afterwards."""
    names = golden.named(scenario), golden.named(scenario)
    for step in golden.opening(scenario):
        pair.both(step, names)
    try:
        yield Scene(pair, names, scenario["name"])
    finally:
        for step in golden.closing(scenario):
            pair.both(step, names)


def _without_placeholders(value: Any) -> Any:
    """Return a value without the members that golden.py has replaced by placeholders."""
    if isinstance(value, dict):
        return {k: _without_placeholders(v) for k, v in value.items() if not _is_placeholder(v)}
    if isinstance(value, list):
        return [_without_placeholders(v) for v in value if not _is_placeholder(v)]
    return value


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("<") and value.endswith(">")
