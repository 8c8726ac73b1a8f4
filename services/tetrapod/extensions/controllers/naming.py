"""Names: each of a definition's names is accepted if no other definition of its group has it.

One worker, since it is who comes first that counts. Upstream: pkg/controller/status/naming_controller.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.extensions.controllers.controller import CrdController
from tetrapod.extensions.crds import Crd, Crds, Names
from tetrapod.extensions.definitions.conditions import ESTABLISHED, NAMES_ACCEPTED, condition, equivalent, find, put
from tetrapod.generic.client.interface import Client
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object

_NOT_ACCEPTED: Final = condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
_INSTALLING: Final = condition(ESTABLISHED, "False", "Installing", "the initial names have been accepted")
_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class NamingController(CrdController):
    name = "NamingConditionController"

    def __init__(self, crds: Crds, client: Client) -> None:
        super().__init__(crds, client)
        self._written: dict[str, tuple[int, Names]] = {}  # what we wrote and may not have seen yet

    def concerns(self, old: Crd | None, new: Crd | None) -> bool:
        return True

    async def sync(self, name: str) -> None:
        crd = self.crds.get(name)
        if crd is None:
            self._written.pop(name, None)
            self._requeue_group(name)  # its names are free
            return
        if crd.names == crd.accepted:
            return
        obj = crd.object()
        status = obj.get("status") or {}
        names, accepted, established = self._settle(crd, obj)
        if names == (status.get("acceptedNames") or {}) and equivalent(accepted, find(obj, NAMES_ACCEPTED)):
            return
        obj.setdefault("status", {})["acceptedNames"] = names
        put(obj, accepted)
        put(obj, established)
        written = await self.write_status(obj)
        if written is not None:
            self._written[name] = (int(written["metadata"]["resourceVersion"]), Names.of(names))
            self._requeue_group(name)

    def _settle(self, crd: Crd, obj: Object) -> tuple[Object, Object, Object]:
        """The names that it gets, and what is to be said of NamesAccepted and Established."""
        wanted, had = obj["spec"]["names"], (obj.get("status") or {}).get("acceptedNames") or {}
        resources, kinds = self._taken(crd.group)
        names = {"plural": "", "kind": "", **had}
        conflict: tuple[str, str] | None = None
        for key in ("plural", "singular"):
            conflict = _settle_one(names, wanted, key, resources) or conflict
        conflict = _settle_short_names(names, wanted, had, resources) or conflict
        for key in ("kind", "listKind"):
            conflict = _settle_one(names, wanted, key, kinds) or conflict
        _copy(names, wanted, "categories")
        if conflict is None:
            accepted = condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
        else:
            accepted = condition(NAMES_ACCEPTED, "False", *conflict)
        established = find(obj, ESTABLISHED) or _NOT_ACCEPTED
        if established["status"] != "True" and conflict is None:
            established = _INSTALLING
        return names, accepted, established

    def _taken(self, group: str) -> tuple[set[str], set[str]]:
        """Names of resources and of kinds that the group's definitions have by now."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for crd in self.crds:
            if crd.group == group:
                revision, names = self._written.get(crd.name, (0, crd.accepted))
                if revision <= crd.entry.revision:
                    names = crd.accepted
                resources.update((names.plural, names.singular, *names.short_names))
                kinds.update((names.kind, names.list_kind))
        return resources, kinds

    def _requeue_group(self, name: str) -> None:
        group = name.partition(".")[2]
        for crd in self.crds:
            if crd.group == group and crd.name != name and crd.names != crd.accepted:
                self.queue.add(crd.name)


def _settle_one(names: Object, wanted: Object, key: str, taken: set[str]) -> tuple[str, str] | None:
    """Reason and message of a conflict; else the name is taken over into `names`."""
    name = wanted.get(key) or ""
    if name != (names.get(key) or "") and name in taken:
        return _REASONS[key], f"{go_quote(name)} is already in use"
    names[key] = name
    return None


def _settle_short_names(names: Object, wanted: Object, had: Object, taken: set[str]) -> tuple[str, str] | None:
    own = {*(had.get("shortNames") or ()), had.get("plural") or "", had.get("singular") or ""}
    texts = [f"{go_quote(name)} is already in use" for name in wanted.get("shortNames") or () if name not in own and name in taken]
    if texts:
        distinct = list(dict.fromkeys(texts))
        return "ShortNamesConflict", distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    _copy(names, wanted, "shortNames")
    return None


def _copy(names: Object, wanted: Object, key: str) -> None:
    if wanted.get(key):
        names[key] = list(wanted[key])
    else:
        names.pop(key, None)
