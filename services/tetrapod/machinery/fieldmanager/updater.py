"""Computation of ownership after an update or an apply, and of the fields that an apply removes.

It works on one kind whose managers may use several versions.

Upstream: sigs.k8s.io/structured-merge-diff/merge/update.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tetrapod.machinery.fieldmanager import fieldset
from tetrapod.machinery.fieldmanager.compare import Changes, compare, same
from tetrapod.machinery.fieldmanager.entries import Entry, Managed, new_entry
from tetrapod.machinery.fieldmanager.fieldset import FieldFilter, FieldSet
from tetrapod.machinery.fieldmanager.merge import merge
from tetrapod.machinery.fieldmanager.remove import reconcile, remove_items, with_named_fields
from tetrapod.machinery.fieldmanager.to_field_set import field_set
from tetrapod.machinery.fieldmanager.typed import SchemaError, Type
from tetrapod.machinery.fieldmanager.validate import join, validate
from tetrapod.machinery.freeing import free_large
from tetrapod.machinery.gvk import GroupVersion, Object
from tetrapod.machinery.status import StatusError

_PRUNING: Final = "failed to prune fields: "
"""The beginning of errors about the removal of fields that a manager no longer applies."""


class MissingVersionError(Exception):
    """The error for a version of the kind that does not exist, or no longer exists."""


class SchemaMismatch(SchemaError):
    """The error for an object that does not match the schema of another version that one of its managers uses."""


class Conflict(NamedTuple):
    """A field that an apply would take from another manager.

    Attributes:
        manager_id: the identifier of the other manager.
        path: the path elements of the field.
    """

    manager_id: str
    path: tuple[str, ...]


class Conflicts(Exception):
    """The error of an apply that would take fields from other managers.

    Attributes:
        conflicts: each field and manager, as `Conflict`.
    """

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


class Updater:
    """Computes which manager owns which fields after an update or an apply of an object of one kind."""

    def __init__(
        self,
        type_for: Callable[[str], Type],
        convert: Callable[[Object, str], Object],
        filters: Mapping[str, FieldFilter],
        *,
        thorough: bool = False,
    ) -> None:
        """Create the updater.

        Args:
            type_for: returns the type of the kind in an `apiVersion`, raising MissingVersionError.
            convert: converts an object to an `apiVersion`, raising MissingVersionError.
            filters: by `apiVersion`, filters that remove the fields that users of the endpoint cannot own.
            thorough: whether objects must be validated after conversion.
        """
        self._type_for = type_for
        self._convert = convert
        self._filters = filters
        self._thorough = thorough

    def update(self, live: Object, new: Object, version: str, managed: Managed, manager: str) -> Managed:
        """Return the managed fields after `manager` has changed `live` to `new`, both in `version`.

        Other managers lose the changed fields. `manager` gets a new entry with the identity `{}`, which the caller
        replaces. `managed` is not modified.

        Args:
            live: the existing object.
            new: the object after the update.
            version: the `apiVersion` of both.
            managed: the managed fields of the existing object.
            manager: the key of the manager in `managed`. If it owns no fields, the result has no entry for it.

        Raises:
            SchemaError: a changed part does not match the schema.
        """
        managed = self._reconciled(managed, live, version)
        managed, changes = self._take(live, new, version, managed, manager, force=True)
        owned = managed[manager].fields if manager in managed else {}
        owned = fieldset.union(fieldset.difference(owned, changes.removed), changes.touched)
        managed[manager] = new_entry("{}", self._filtered(version, owned), version, applied=False)
        if not managed[manager].fields:
            del managed[manager]
        return managed

    def apply(
        self, live: Object, config: Object, version: str, managed: Managed, manager: str, *, force: bool
    ) -> tuple[Object | None, Managed]:
        """Return the merged object (None if it equals `live`) and the managed fields after an apply.

        The merged object lacks the fields that the manager applied last time and no longer applies, unless others own
        them.

        Args:
            live: the existing object in `version`.
            config: the applied configuration.
            version: the `apiVersion` of both.
            managed: the managed fields of the existing object, which are not modified.
            manager: the identifier of the manager that applies.
            force: whether to take over fields that other managers own.

        Raises:
            Conflicts: other managers own fields that the configuration changes, and `force` is not set.
            SchemaError: the existing object does not match the schema.
        """
        value_type = self._type_for(version)
        managed = self._reconciled(managed, live, version)
        merged = merge(live, config, value_type)
        last_entry = managed.get(manager)
        applied_fields = self._filtered(version, field_set(config, value_type))
        time = last_entry.time if last_entry is not None else None
        managed[manager] = new_entry(manager, applied_fields, version, applied=True, time=time)
        if last_entry is not None and last_entry.fields and self._may_prune(managed, manager, last_entry):
            merged = self._pruned(merged, version, managed, last_entry)
        managed, changes = self._take(live, merged, version, managed, manager, force=force)
        discarded: list[Any] = [*changes]
        del changes
        free_large(discarded)  # the sets of a large configuration would be freed at once at the end of this function
        return (None if same(live, merged) else merged), managed

    def _may_prune(self, managed: Managed, manager: str, last: Entry) -> bool:
        """Return whether an apply may remove fields, or may fail while upstream searches for fields to remove.

        Args:
            managed: the managed fields, including the new entry of the manager.
            manager: the identifier of the manager.
            last: its entry before this apply.
        """
        new = managed[manager]
        if new.api_version != last.api_version or fieldset.difference(last.fields, new.fields):
            return True
        return self._thorough and any(entry.api_version != new.api_version for entry in managed.values())

    def _reconciled(self, managed: Managed, live: Object, version: str) -> Managed:
        """Return managed fields with the field sets adapted to the current schema.

        Entries of versions that do not exist are left out. The existing object must match the schemas of the others.

        Upstream: structured-merge-diff, merge/update.go, reconcileManagedFieldsWithSchemaChanges

        Args:
            managed: the managed fields, which are not modified.
            live: the existing object.
            version: its `apiVersion`.

        Raises:
            SchemaError: the version of an entry cannot be parsed, or the object does not match its schema.
            StatusError: the converter failed.
        """
        out: Managed = {}
        for manager, entry in managed.items():
            try:
                GroupVersion.parse(entry.api_version)
            except ValueError as error:
                raise SchemaError(str(error)) from None
            try:
                fields = reconcile(entry.fields, self._type_for(entry.api_version))
            except MissingVersionError:
                continue
            out[manager] = entry if fields is entry.fields else entry.owning(fields)
        if self._thorough:
            for other in sorted({entry.api_version for entry in out.values()} - {version}):
                self._converted(live, other)
        return out

    def _filtered(self, version: str, fields: FieldSet) -> FieldSet:
        version_filter = self._filters.get(version)
        return fields if version_filter is None else version_filter(fields)

    def _changes(self, live: Object, new: Object, version: str) -> Changes:
        changes = compare(live, new, self._type_for(version))
        if version not in self._filters:
            return changes
        return Changes(self._filtered(version, changes.touched), self._filtered(version, changes.removed))

    def _take(
        self, live: Object, new: Object, version: str, managed: Managed, manager: str, *, force: bool
    ) -> tuple[Managed, Changes]:
        """Remove the changed fields from the entries of all managers except the one that made the change.

        Args:
            live: the object before the change.
            new: the object after the change.
            version: the `apiVersion` of both.
            managed: the managed fields.
            manager: the identifier of the manager that made the change.
            force: whether the change may take fields from other managers.

        Returns:
            The remaining entries, and the changes in `version`.

        Raises:
            Conflicts: other managers own changed fields, and `force` is not set.
        """
        changes_by_version = {version: self._changes(live, new, version)}
        conflicts: list[Conflict] = []
        out: Managed = {}
        for other in sorted(managed):
            entry = managed[other]
            if other == manager:
                out[other] = entry
                continue
            try:
                changes = self._changes_in(entry.api_version, changes_by_version, live, new)
            except MissingVersionError:
                continue
            taken = fieldset.intersection(entry.fields, changes.touched)
            conflicts += [Conflict(other, path) for path in fieldset.paths(taken)]
            out[other] = _without(entry, taken, changes.removed)
        if conflicts and not force:
            raise Conflicts(conflicts)
        return {other: entry for other, entry in out.items() if entry.fields}, changes_by_version[version]

    def _changes_in(self, version: str, known: dict[str, Changes], live: Object, new: Object) -> Changes:
        if version not in known:
            known[version] = self._changes(
                self._converted(live, version),
                self._converted(new, version, "failed to convert new object: "),
                version,
            )
        return known[version]

    def _converted(self, obj: Object, version: str, prefix: str = "") -> Object:
        """Return an object converted to another version.

        Upstream builds a typed value from the converted object, which may have no duplicates, unlike an object in the
        requested version (versionconverter.go, Convert). It converts the old object when it reconciles managers with
        the schema; therefore errors of the old object have no prefix.

        Args:
            obj: the object.
            version: the `apiVersion` to convert to.
            prefix: the beginning of errors.

        Raises:
            SchemaMismatch: the converted object does not match its schema.
            StatusError: the converter failed.
            MissingVersionError: the version does not exist.
        """
        try:
            converted = self._convert(obj, version)
        except StatusError as error:
            raise StatusError(error.code, error.reason, prefix + error.message) from None
        if self._thorough and (errors := validate(converted, self._type_for(version))):
            raise SchemaMismatch(f"{prefix}{join(errors)}")
        return converted

    def _pruned(self, merged: Object, version: str, managed: Managed, last: Entry) -> Object:
        """Return `merged` without the fields that the manager no longer applies.

        These are fields that it applied last time and does not apply now, and that no other manager owns.

        Args:
            merged: the merged object in `version`.
            version: its `apiVersion`.
            managed: the managed fields, including the new entry of the manager.
            last: the entry of the manager before this apply.
        """
        try:
            value_type = self._type_for(last.api_version)
            in_last_version = merged
            if last.api_version != version:
                prefix = f"{_PRUNING}failed to convert merged object to last applied version: "
                in_last_version = self._converted(merged, last.api_version, prefix)
        except MissingVersionError:
            return merged
        pruned = remove_items(in_last_version, with_named_fields(last.fields, value_type), value_type)
        pruned = self._with_owned(in_last_version, pruned, last.api_version, managed)
        pruned = self._with_dangling(in_last_version, pruned, value_type, last)
        return pruned if last.api_version == version else self._converted(pruned, version, _PRUNING)

    def _with_owned(self, merged: Object, pruned: Any, version: str, managed: Managed) -> Any:
        """Return `pruned` with the fields of `merged` restored that any manager owns.

        Args:
            merged: the merged object.
            pruned: the merged object without the fields that the manager applied last time.
            version: the `apiVersion` of both.
            managed: the managed fields.
        """
        owned: dict[str, FieldSet] = {version: {}}
        for entry in managed.values():
            owned[entry.api_version] = fieldset.union(owned.get(entry.api_version, {}), entry.fields)
        current_version = version
        for owned_version, fields in owned.items():
            try:
                value_type = self._type_for(owned_version)
                if owned_version != current_version:
                    merged = self._converted(merged, owned_version, _adding_back("merged", owned_version))
                    pruned = self._converted(pruned, owned_version, _adding_back("pruned", owned_version))
            except MissingVersionError:
                continue
            current_version = owned_version
            kept = fieldset.union(
                with_named_fields(field_set(pruned, value_type), value_type), with_named_fields(fields, value_type)
            )
            pruned = remove_items(
                merged,
                fieldset.difference(with_named_fields(field_set(merged, value_type), value_type), kept),
                value_type,
            )
        return pruned if current_version == version else self._converted(pruned, version, _PRUNING)

    @staticmethod
    def _with_dangling(merged: Object, pruned: Any, value_type: Type, last: Entry) -> Any:
        """Return `pruned` with the fields of `merged` restored that the manager's last apply did not contain.

        `_with_owned` restores only owned fields. Fields without any owner must remain too: an apply removes only fields
        that its own manager applied before.

        Args:
            merged: the merged object.
            pruned: the merged object without the fields to remove.
            value_type: the type of both.
            last: the entry of the manager before this apply.
        """
        merged_fields, pruned_fields = (
            with_named_fields(field_set(merged, value_type), value_type),
            with_named_fields(field_set(pruned, value_type), value_type),
        )
        removed_fields = fieldset.difference(merged_fields, pruned_fields)
        return remove_items(
            merged, fieldset.intersection(removed_fields, with_named_fields(last.fields, value_type)), value_type
        )


def _adding_back(which: str, version: str) -> str:
    """Return the beginning of the error for an object that cannot be converted while its owned fields are restored."""
    return f"{_PRUNING}failed add back owned items: failed to convert {which} object at version {version}: "


def _without(entry: Entry, *removed: FieldSet) -> Entry:
    fields = entry.fields
    for gone in removed:
        if gone:
            fields = fieldset.difference(fields, gone)
    return entry if fields is entry.fields else entry.owning(fields)
