"""Maintenance of `metadata.managedFields` of one kind on every write, and merging of server-side applies.

The endpoints call `update` when a create, update or patch has its final object (before validation), and `apply` for an
apply patch. Arguments are never modified. Each of upstream's chained managers is one method here, in the same order:
version check, last-applied annotation, tracking from the first apply, capping, manager identity, time, system fields.

Upstream: k8s.io/apimachinery/pkg/util/managedfields (internal/fieldmanager.go and the files beside it).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from tetrapod.machinery.fieldmanager import conflict, fieldset, lastapplied
from tetrapod.machinery.fieldmanager.entries import (
    APPLY,
    UPDATE,
    Managed,
    decode,
    encode,
    identifier,
    is_reset,
    new_entry,
)
from tetrapod.machinery.fieldmanager.entry_limit import cap_update_managers
from tetrapod.machinery.fieldmanager.fieldset import FieldFilter
from tetrapod.machinery.fieldmanager.managed_objects import (
    are_managed_fields,
    describe,
    kind_of,
    metadata,
    with_managed_fields,
    without_managed_fields,
)
from tetrapod.machinery.fieldmanager.typed import SchemaError
from tetrapod.machinery.fieldmanager.updater import Conflicts, MissingVersionError, SchemaMismatch, Updater
from tetrapod.machinery.fieldmanager.validate import differing, join, validate
from tetrapod.machinery.fieldmanager.versions import KindVersions
from tetrapod.machinery.freeing import free_large
from tetrapod.machinery.gvk import GroupVersionKind, Object
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.status import StatusError, bad_request
from tetrapod.machinery.timestamps import now_rfc3339

_log = logging.getLogger(__name__)
_CURRENT: Final = "current-operation"
_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_SYSTEM_FIELDS: Final = fieldset.of_fields(
    [
        ("apiVersion",),
        ("kind",),
        ("metadata",),
        *(
            ("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)
"""Fields that no manager ever owns."""
Finish = Callable[[Object, bool], Object]
"""A function that returns the final form of an applied object, given whether the apply changed anything."""


class FieldManager:
    """The field manager of one endpoint: a kind in the version that requests use, or one of its subresources."""

    def __init__(
        self,
        kind: GroupVersionKind,
        node_for: Callable[[str], SchemaNode | None],
        convert: Callable[[Object, str], Object] | None = None,
        *,
        hub: str = "",
        reset_fields: Mapping[str, FieldFilter] | None = None,
        subresource: str = "",
        thorough: bool = False,
    ) -> None:
        """Create a field manager.

        Args:
            kind: the `apiVersion` and `kind` of requests to this endpoint.
            node_for: returns the schema of the kind in an `apiVersion`; None or LookupError if that version does not
                exist.
            convert: converts an object of the kind to another `apiVersion`, raising LookupError if that version does
                not exist. It is needed only if the kind has several versions. It must not modify its argument.
            hub: the `apiVersion` of the objects that `update` and `apply` take and return; if empty, that of requests.
            reset_fields: by version, a filter that removes the fields that users of this endpoint cannot own
                (`fieldset.exclude`, `include`).
            subresource: the subresource of the entries.
            thorough: whether to validate whole objects, in every version that a manager uses, before tracking an
                update, and the stored object before an apply. Needed for custom resources, because stored objects may
                not match their schema.
        """
        self._kind = kind
        self._version = kind.api_version
        self._hub = hub or kind.api_version
        self._versions = KindVersions(node_for, convert, custom=thorough)
        self._type_for, self._convert = self._versions.type_for, self._versions.convert
        self._subresource = subresource
        self._thorough = thorough
        self._updater = Updater(self._type_for, self._convert, reset_fields or {}, thorough=thorough)

    def update(self, live: Object | None, new: Object, manager: str) -> Object:
        """Return a copy of `new` with the managed fields after `manager` has changed `live` to it.

        On the main resource, managed fields in `new` replace those of `live` first, if they are valid. If an object
        does not match its schema, the result has the managed fields of `live` unchanged.

        Args:
            live: the existing object, or None on create.
            new: the object to store, which is not modified.
            manager: the name of the field manager; "" is "unknown".
        """
        managed, kept = self._decode_live_or_new(live, new)
        bare = without_managed_fields(new)
        try:
            updated = self._update(live, bare, managed, manager)
        except (SchemaError, MissingVersionError, StatusError) as error:
            _log.debug("managed fields of %s were left as they were: %s", self._kind, error)
            return with_managed_fields(bare, kept)
        return with_managed_fields(bare, encode(updated))

    def apply(
        self,
        live: Object | None,
        config: Object,
        manager: str,
        *,
        force: bool,
        finish: Finish = lambda applied, changed: applied,
    ) -> Object:
        """Merge an applied configuration into the existing object, and return the result with its managed fields.

        If nothing changed, the existing object is kept as it is, without new defaults. The arguments are not modified.

        Args:
            live: the existing object, or None if the apply creates it.
            config: the applied configuration.
            manager: the name of the field manager; "" is "unknown".
            force: whether to take over fields that other managers own.
            finish: returns the final object for the merged one, given whether the apply changed anything. If it did,
                `finish` sets defaults and normalizes; upstream decodes the object into Go structs at this point. The
                merged object may have nulls, where the configuration had them or where a map lost its last member.

        Raises:
            StatusError: 400 if the configuration is of another kind or does not match the schema, 409 for conflicts.
        """
        self.check_kind(config)
        try:
            managed = decode(metadata(live).get("managedFields"))
        except ValueError as error:
            raise _failure(f"failed to decode managed fields: {error}") from error
        bare = self._versions.empty(self._kind) if live is None else without_managed_fields(live)
        try:
            if not managed:
                managed = self._before_first_apply(bare) if live is not None else {}
            merged, managed = self._apply_as(bare, config, managed, manager, force=force)
        except SchemaMismatch as error:
            raise _failure(str(error)) from error
        except SchemaError as error:
            raise _failure(
                f"failed to create typed live object ({describe(bare)}): {self._schema_errors(bare, error)}"
            ) from error
        except Conflicts as error:
            raise conflict.conflict_error(error.conflicts) from error
        changed = live is None or merged is not bare
        if manager == lastapplied.KUBECTL:
            merged = lastapplied.with_annotation(merged, config)
        applied = with_managed_fields(merged, encode(managed))
        del merged
        managed.clear()
        result = finish(applied, changed)
        discarded = [applied]
        del applied
        free_large(discarded)  # the merged object and its field sets, unless the result or an argument has them
        return result

    def check_kind(self, config: Object) -> None:
        """Check that an applied configuration is of the kind and version of the endpoint.

        Raises:
            StatusError: 400, it is not.
        """
        if (gvk := kind_of(config)) != self._kind:
            raise bad_request(f"invalid object type: {gvk}")

    # --- update ---

    def _update(self, live: Object | None, new: Object, managed: Managed, manager: str) -> Managed:
        if not managed and metadata(live).get("uid"):
            # Tracking starts with the creation or the first apply, not with an update in between.
            return managed
        old = (
            self._versions.empty(self._kind)
            if live is None
            else self._convert(without_managed_fields(live), self._version)
        )
        versioned = self._convert(new, self._version)
        if self._thorough:
            self._check(new, managed)
            if live is not None and (errors := self._errors_of(differing(old, versioned))):
                raise SchemaError(join(errors))
        manager_id = identifier(manager or "unknown", UPDATE, self._version, self._subresource)
        managed = self._updater.update(old, versioned, self._version, managed, _CURRENT)
        change = managed.pop(_CURRENT, None)
        owned = fieldset.difference(change.fields, _SYSTEM_FIELDS) if change is not None else {}
        if owned:
            if manager_id in managed:
                owned = fieldset.union(owned, managed[manager_id].fields)
            managed[manager_id] = new_entry(manager_id, owned, self._version, applied=False, time=now_rfc3339())
        return cap_update_managers(managed)

    def _before_first_apply(self, live: Object) -> Managed:
        """Return managed fields in which the manager `before-first-apply` owns all fields of an object.

        The object is an existing one without managed fields.

        Args:
            live: the existing object, before the apply request.

        Raises:
            StatusError: 400 if the object does not match its schema.

        Upstream: skipnonapplied.go.
        """
        try:
            return self._update(None, live, {}, _BEFORE_FIRST_APPLY)
        except SchemaError as error:
            text = f"failed to convert new object ({describe(live)}) to smd typed: {self._schema_errors(live, error)}"
            raise _failure(f"failed to create manager for existing fields: {text}") from error

    def _schema_errors(self, live: Object, error: SchemaError) -> str:
        """Return all schema errors of an object as one text, for the message of a response.

        Args:
            live: the existing object.
            error: the error that was raised for it, whose text is the result if validation finds no error.
        """
        return join(self._errors_of(self._convert(live, self._version)) or [str(error)])

    def _errors_of(self, obj: Object) -> list[str]:
        """Return the schema errors of a stored object, or of a part of it, in the requested version."""
        return validate(obj, self._type_for(self._version), allow_duplicates=True)

    def _check(self, obj: Object, managed: Managed) -> None:
        """Validate an object in the requested version and in every version that a manager uses.

        Versions that no longer exist are skipped. Only in the requested version may lists have duplicates.

        Args:
            obj: the object, in any version.
            managed: the decoded managed fields, which name the versions.

        Raises:
            SchemaError: the object does not match the schema.
        """
        for version in {self._version, *(entry.api_version for entry in managed.values())}:
            try:
                value_type = self._type_for(version)
                errors = validate(self._convert(obj, version), value_type, allow_duplicates=version == self._version)
            except MissingVersionError:
                continue
            if errors:
                raise SchemaError(join(errors))

    def _decode_live_or_new(self, live: Object | None, new: Object) -> tuple[Managed, Any]:
        """Return the managed fields to start from, decoded, and the encoded ones of `live` to keep if tracking fails.

        On the main resource, valid managed fields in the request (`new`) replace the stored ones.

        Args:
            live: the existing object; None on create.
            new: the object of the request.
        """
        stored, requested = metadata(live).get("managedFields"), metadata(new).get("managedFields")
        if not self._subresource:
            if is_reset(requested):
                return {}, stored
            if requested and requested != stored:
                try:
                    return decode(requested), stored
                except ValueError:
                    pass
        try:
            return decode(stored), stored
        except ValueError:
            return {}, stored

    # --- apply ---

    def _apply_as(
        self, live: Object, config: Object, managed: Managed, manager: str, *, force: bool
    ) -> tuple[Object, Managed]:
        try:
            return self._apply(live, config, managed, manager, force=force)
        except Conflicts as error:
            if manager != lastapplied.KUBECTL:
                raise
            value_type = self._type_for(self._version)
            remaining = lastapplied.remaining_conflicts(
                error.conflicts, self._convert(live, self._version), self._version, value_type
            )
            if remaining:
                raise Conflicts(remaining) from error
        return self._apply(live, config, managed, manager, force=True)

    def _apply(
        self, live: Object, config: Object, managed: Managed, manager: str, *, force: bool
    ) -> tuple[Object, Managed]:
        if are_managed_fields(metadata(config).get("managedFields")):
            raise bad_request("metadata.managedFields must be nil")
        value_type = self._type_for(self._version)
        if errors := validate(config, value_type):
            raise _failure(f"failed to create typed patch object ({describe(config)}): {join(errors)}")
        manager_id = identifier(manager or "unknown", APPLY, "", self._subresource)
        versioned = self._convert(live, self._version)
        if self._thorough and (errors := self._errors_of(versioned)):
            raise _failure(f"failed to create typed live object ({describe(versioned)}): {join(errors)}")
        merged, managed = self._updater.apply(versioned, config, self._version, managed, manager_id, force=force)
        entry = managed.pop(manager_id, None)
        owned = fieldset.difference(entry.fields, _SYSTEM_FIELDS) if entry is not None else {}
        if entry is not None and owned:
            time = entry.time if merged is None else now_rfc3339()
            managed[manager_id] = new_entry(manager_id, owned, self._version, applied=True, time=time)
        return (live if merged is None else self._convert(merged, self._hub)), managed


def _failure(message: str) -> StatusError:
    """Return a 400 with a message. Upstream answers with a 500, although the object of the client is invalid."""
    return bad_request(message)
