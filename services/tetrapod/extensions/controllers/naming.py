"""The controller that accepts the names of CustomResourceDefinitions.

A name is accepted if no other definition of its group has it. Names are reserved in memory before they are written, so
that several definitions can be written at once; the first one wins. The accepted names of a group are counted and not
recomputed, because a group may have thousands of definitions.

Upstream: apiextensions-apiserver/pkg/controller/status/naming_controller.go.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container
from typing import Final

from tetrapod.extensions.conditions import ESTABLISHED, NAMES_ACCEPTED, condition, equivalent, put
from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.crds import Crd, Crds, Names
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.machinery.conditions import find_condition
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

_NOT_ACCEPTED: Final = condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
_INSTALLING: Final = condition(ESTABLISHED, "False", "Installing", "the initial names have been accepted")
_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class _Group:
    """The accepted names of one API group, and the definitions whose names are not all accepted.

    Attributes:
        resources: the number of definitions that have each plural, singular or short name.
        kinds: the number of definitions that have each kind or list kind.
        wanting: the names of the definitions whose accepted names differ from the requested ones.
    """

    def __init__(self) -> None:
        self.resources: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.wanting: set[str] = set()

    @property
    def empty(self) -> bool:
        """Whether no name of the group is accepted and no definition waits for one to be accepted."""
        return not (self.resources or self.kinds or self.wanting)

    def take(self, names: Names, times: int = 1) -> None:
        """Count the names of a definition as accepted; with `times=-1`, stop counting them."""
        for counter, taken in (
            (self.resources, (names.plural, names.singular, *names.short_names)),
            (self.kinds, (names.kind, names.list_kind)),
        ):
            for name in taken:
                counter[name] += times
                if not counter[name]:
                    del counter[name]


class NamingController(CrdController):
    """The controller that accepts the names of a definition unless another definition of its API group has them.

    It writes status.acceptedNames and the condition NamesAccepted. Until Established is True, it also sets Established
    to False: with reason Installing if all names are accepted, else with NotAccepted if the condition is missing.
    """

    name = "NamingConditionController"
    workers = 8

    def __init__(self, crds: Crds, client: Client) -> None:
        super().__init__(crds, client)
        # by definition, the revision that this controller wrote but may not have observed yet; infinite while the write
        # is in flight
        self._written: dict[str, float] = {}
        self._accepted: dict[str, Names] = {}  # the names of each definition as counted in the groups
        self._groups: dict[str, _Group] = {}

    def start(self, lifecycle: Lifecycle) -> None:
        for crd in self.crds:
            self._count(None, crd)
        self.crds.listeners.append(self._count)
        super().start(lifecycle)

    def _count(self, old: Crd | None, new: Crd | None) -> None:
        crd = new or old
        assert crd is not None
        group = self._groups.setdefault(crd.group, _Group())
        if new is None:
            self._written.pop(crd.name, None)
            self._recount(crd, None)
        elif new.entry.revision >= self._written.get(crd.name, 0):
            self._written.pop(crd.name, None)
            self._recount(crd, new.accepted)
        if new is not None and new.names != new.accepted:
            group.wanting.add(crd.name)
        else:
            group.wanting.discard(crd.name)
        if new is None and group.empty:
            del self._groups[crd.group]

    def _recount(self, crd: Crd, names: Names | None) -> None:
        group, previous = self._groups[crd.group], self._accepted.pop(crd.name, None)
        if previous is not None:
            group.take(previous, -1)
        if names is not None:
            group.take(names)
            self._accepted[crd.name] = names

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        return True

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None:
            self._requeue_group(name)  # its names are free now
            return
        if crd.names == crd.accepted:
            return
        obj = crd.object()
        status = obj.get("status") or {}
        names, accepted, established = self._settle(crd, obj)
        if names == (status.get("acceptedNames") or {}) and equivalent(accepted, find_condition(obj, NAMES_ACCEPTED)):
            return
        obj.setdefault("status", {})["acceptedNames"] = names
        put(obj, accepted)
        put(obj, established)
        self._written[name] = math.inf
        self._recount(crd, Names.of(names))
        written: Object | None = None
        try:
            written = await self.write_status(obj)
        finally:
            self._end_of_write(name, int(written["metadata"]["resourceVersion"]) if written is not None else 0)

    def _end_of_write(self, name: str, revision: int) -> None:
        """Process the end of an attempt to write the accepted names of a definition.

        `sync` counts the new names as accepted before it writes them. They stay counted until this process observes the
        written revision. If it has observed a later revision, or if nothing was written, they are replaced by the names
        in the observed revision. In each case, the other definitions of the group whose names are not accepted are
        queued again.

        Args:
            name: the name of the definition.
            revision: the written revision, or 0 if nothing was written.
        """
        self._written.pop(name, None)
        crd = self.crds.get(name)
        if crd is not None:
            if crd.entry.revision < revision:
                self._written[name] = revision
            else:
                self._recount(crd, crd.accepted)
        self._requeue_group(name)

    def _settle(self, crd: Crd, obj: Object) -> tuple[Object, Object, Object]:
        """Return the new status.acceptedNames, and the conditions NamesAccepted and Established.

        Args:
            obj: the whole definition `crd`, which is not changed.
        """
        requested, previous = obj["spec"]["names"], (obj.get("status") or {}).get("acceptedNames") or {}
        group = self._groups[crd.group]
        names = {"plural": "", "kind": "", **previous}
        conflict: tuple[str, str] | None = None
        for key in ("plural", "singular"):
            conflict = _settle_one(names, requested, key, group.resources) or conflict
        conflict = _settle_short_names(names, requested, previous, group.resources) or conflict
        for key in ("kind", "listKind"):
            conflict = _settle_one(names, requested, key, group.kinds) or conflict
        _copy(names, requested, "categories")
        if conflict is None:
            accepted = condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
        else:
            accepted = condition(NAMES_ACCEPTED, "False", *conflict)
        established = find_condition(obj, ESTABLISHED) or _NOT_ACCEPTED
        if established["status"] != "True" and conflict is None:
            established = _INSTALLING
        return names, accepted, established

    def _requeue_group(self, name: str) -> None:
        group = self._groups.get(name.partition(".")[2])
        if group is not None:
            for other in group.wanting - {name}:
                self.queue.add(other)


def _settle_one(names: Object, requested: Object, key: str, taken: Container[str]) -> tuple[str, str] | None:
    """Copy one name from `requested` to `names`, or return reason and message of a conflict.

    Args:
        names: the names that are accepted so far, changed in place unless there is a conflict.
        requested: spec.names.
        key: the field, such as "plural".
        taken: the accepted names of all definitions of the group. They include those of this definition, so a name
            that is in `names` already is not a conflict.

    Returns:
        None if the name is accepted.
    """
    name = requested.get(key) or ""
    if name != (names.get(key) or "") and name in taken:
        return _REASONS[key], f"{go_quote(name)} is already in use"
    names[key] = name
    return None


def _settle_short_names(
    names: Object, requested: Object, previous: Object, taken: Container[str]
) -> tuple[str, str] | None:
    own = {*(previous.get("shortNames") or ()), previous.get("plural") or "", previous.get("singular") or ""}
    texts = [
        f"{go_quote(name)} is already in use"
        for name in requested.get("shortNames") or ()
        if name not in own and name in taken
    ]
    if texts:
        return "ShortNamesConflict", aggregate_errors(texts)
    _copy(names, requested, "shortNames")
    return None


def _copy(names: Object, requested: Object, key: str) -> None:
    if requested.get(key):
        names[key] = list(requested[key])
    else:
        names.pop(key, None)
