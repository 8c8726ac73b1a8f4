"""Who owns what after an update or an apply: taking fields over, giving them up, and what an apply removes.

Works on one kind whose managers may use several of its versions. Follows sigs.k8s.io/structured-merge-diff/merge/update.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.compare import Changes, compare, same
from tetrapod.machinery.fieldmanager.entries import Entry, Managed, new_entry
from tetrapod.machinery.fieldmanager.fieldset import FieldFilter, FieldSet
from tetrapod.machinery.fieldmanager.merge import merge
from tetrapod.machinery.fieldmanager.remove import reconcile, remove_items, with_named_fields
from tetrapod.machinery.fieldmanager.toset import field_set
from tetrapod.machinery.fieldmanager.typed import SchemaError, Type
from tetrapod.machinery.fieldmanager.validate import join, validate
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError


class MissingVersionError(Exception):
    """Objects of the kind cannot be had in a version (any more)."""


class Misfit(SchemaError):
    """An object does not fit the schema of another version that somebody manages it in."""


class Conflict(NamedTuple):
    manager_id: str
    path: tuple[str, ...]


class Conflicts(Exception):
    """What an apply would take from other managers."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class Updater:
    def __init__(
        self,
        type_for: Callable[[str], Type],
        convert: Callable[[Object, str], Object],
        filters: Mapping[str, FieldFilter],
        *,
        thorough: bool = False,
    ) -> None:
        """`type_for` and `convert` raise MissingVersionError; `filters` drop what an endpoint's users cannot own, by version;
        `thorough`: what is converted need not fit."""
        self._type_for = type_for
        self._convert = convert
        self._filters = filters
        self._thorough = thorough

    def update(self, live: Object, new: Object, version: str, managed: Managed, manager: str) -> Managed:
        """The managers after `manager` has made `new` out of `live`, both in `version`; its entry holds this change only.

        Raises:
            SchemaError: a changed part does not fit the schema.
        """
        managed = self._reconciled(managed)
        managed, changes = self._take(live, new, version, managed, manager, force=True)
        own = managed[manager].fields if manager in managed else {}
        own = fieldset.union(fieldset.difference(own, changes.removed), changes.touched)
        managed[manager] = new_entry("{}", self._filtered(version, own), version, applied=False)
        if not managed[manager].fields:
            del managed[manager]
        return managed

    def apply(
        self, live: Object, config: Object, version: str, managed: Managed, manager: str, *, force: bool
    ) -> tuple[Object | None, Managed]:
        """The merged object (None if it is what it was) and the managers after `manager` has applied `config`.

        Raises:
            Conflicts: others own what the configuration changes, and `force` is not set.
            SchemaError: the live object does not fit the schema.
        """
        of = self._type_for(version)
        managed = self._reconciled(managed)
        merged = merge(live, config, of)
        last = managed.get(manager)
        mine = self._filtered(version, field_set(config, of))
        time = last.time if last is not None else None
        managed[manager] = new_entry(manager, mine, version, applied=True, time=time)
        merged = self._pruned(merged, version, managed, last)
        managed, _ = self._take(live, merged, version, managed, manager, force=force)
        return (None if same(live, merged) else merged), managed

    def _reconciled(self, managed: Managed) -> Managed:
        out: Managed = {}
        for manager, entry in managed.items():
            try:
                fields = reconcile(entry.fields, self._type_for(entry.api_version))
            except MissingVersionError:
                continue
            out[manager] = entry if fields is entry.fields else entry.owning(fields)
        return out

    def _filtered(self, version: str, fields: FieldSet) -> FieldSet:
        of_version = self._filters.get(version)
        return fields if of_version is None else of_version(fields)

    def _changes(self, live: Object, new: Object, version: str) -> Changes:
        found = compare(live, new, self._type_for(version))
        if version not in self._filters:
            return found
        return Changes(self._filtered(version, found.touched), self._filtered(version, found.removed))

    def _take(self, live: Object, new: Object, version: str, managed: Managed, manager: str, *, force: bool) -> tuple[Managed, Changes]:
        """Take what changed from the other managers."""
        of_version = {version: self._changes(live, new, version)}
        conflicts: list[Conflict] = []
        out: Managed = {}
        for other in sorted(managed):
            entry = managed[other]
            if other == manager:
                out[other] = entry
                continue
            try:
                changes = self._changes_in(entry.api_version, of_version, live, new)
            except MissingVersionError:
                continue
            taken = fieldset.intersection(entry.fields, changes.touched)
            conflicts += [Conflict(other, path) for path in fieldset.paths(taken)]
            out[other] = _without(entry, taken, changes.removed)
        if conflicts and not force:
            raise Conflicts(conflicts)
        return {other: entry for other, entry in out.items() if entry.fields}, of_version[version]

    def _changes_in(self, version: str, known: dict[str, Changes], live: Object, new: Object) -> Changes:
        if version not in known:
            known[version] = self._changes(self._converted(live, version, "old"), self._converted(new, version, "new"), version)
        return known[version]

    def _converted(self, obj: Object, version: str, which: str) -> Object:
        """
        Raises:
            Misfit: upstream makes a typed value of what it has converted. It converts the old object before, when it reconciles owners
                with the schema, and says no more there than what is wrong.
            StatusError: the converter's own.
        """
        told = "" if which == "old" else "failed to convert new object: "
        try:
            converted = self._convert(obj, version)
        except StatusError as error:
            raise StatusError(error.code, error.reason, told + error.message) from None
        if self._thorough and (errors := validate(converted, self._type_for(version), allow_duplicates=True)):
            raise Misfit(f"{told}{join(errors)}")
        return converted

    def _pruned(self, merged: Object, version: str, managed: Managed, last: Entry | None) -> Object:
        """`merged` without what the manager applied last time, does not apply now, and nobody else owns."""
        if last is None or not last.fields:
            return merged
        try:
            of = self._type_for(last.api_version)
            in_last = self._convert(merged, last.api_version)
        except MissingVersionError:
            return merged
        pruned = remove_items(in_last, with_named_fields(last.fields, of), of)
        pruned = self._with_owned(in_last, pruned, last.api_version, managed)
        pruned = self._with_dangling(in_last, pruned, of, last)
        return pruned if last.api_version == version else self._convert(pruned, version)

    def _with_owned(self, merged: Object, pruned: Any, version: str, managed: Managed) -> Any:
        """Put back what any manager owns."""
        owned: dict[str, FieldSet] = {version: {}}
        for entry in managed.values():
            owned[entry.api_version] = fieldset.union(owned.get(entry.api_version, {}), entry.fields)
        at = version
        for of_version, fields in owned.items():
            try:
                of = self._type_for(of_version)
                if of_version != at:
                    merged, pruned = self._convert(merged, of_version), self._convert(pruned, of_version)
            except MissingVersionError:
                continue
            at = of_version
            kept = fieldset.union(with_named_fields(field_set(pruned, of), of), with_named_fields(fields, of))
            pruned = remove_items(merged, fieldset.difference(with_named_fields(field_set(merged, of), of), kept), of)
        return pruned if at == version else self._convert(pruned, version)

    @staticmethod
    def _with_dangling(merged: Object, pruned: Any, of: Type, last: Entry) -> Any:
        """Put back what the manager had not applied last time: removing is only for its own."""
        before, after = with_named_fields(field_set(merged, of), of), with_named_fields(field_set(pruned, of), of)
        gone = fieldset.difference(before, after)
        return remove_items(merged, fieldset.intersection(gone, with_named_fields(last.fields, of)), of)


def _without(entry: Entry, *removed: FieldSet) -> Entry:
    fields = entry.fields
    for gone in removed:
        if gone:
            fields = fieldset.difference(fields, gone)
    return entry if fields is entry.fields else entry.owning(fields)
