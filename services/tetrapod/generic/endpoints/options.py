"""Decoding and validation of GetOptions, ListOptions, CreateOptions, UpdateOptions, PatchOptions and DeleteOptions.

A malformed number is a 400 with the text of Go's conversion; an invalid choice is a 422 that names the kind of the
options. Only the first value of a repeated parameter is used, and unknown parameters are ignored.
Upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1 (conversion.go, validation/validation.go),
pkg/apis/meta/internalversion/validation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.endpoints.scheme import META_GROUP, is_kind_of_options, options_error, structure_of
from tetrapod.generic.storage.unreadable import GATE as UNSAFE_DELETION_GATE
from tetrapod.machinery.field import FieldError, forbidden, invalid, not_supported, required, too_long
from tetrapod.machinery.golang import integers
from tetrapod.machinery.golang.booleans import query_bool
from tetrapod.machinery.golang.query import Query
from tetrapod.machinery.gvk import GroupKind, GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.schema import decode as typed
from tetrapod.machinery.serializer.type_meta import missing_version
from tetrapod.machinery.status import StatusError, bad_request
from tetrapod.machinery.status import invalid as invalid_object

Values = Mapping[str, str]
"""The first value of each parameter."""

APPLY: Final = "application/apply-patch+yaml"
APPLY_CBOR: Final = "application/apply-patch+cbor"
FIELD_VALIDATION: Final = ("", "Ignore", "Strict", "Warn")
DELETE_OPTIONS: Final = GroupVersionKind("", "v1", "DeleteOptions")
"""The kind whose structure DeleteOptions have in every version."""
UNSAFE_DELETION: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
"""The option of a DELETE that deletes an object which cannot be read."""
_MAX_FIELD_MANAGER: Final = 128


@dataclass(frozen=True, slots=True)
class ListOptions:
    """The options of a list or watch (meta/v1 ListOptions), decoded from the query.

    None and "" mean unset, and so does a `limit` of 0. The fields have the names of the parameters in snake case;
    `continue_token` is `continue`.
    """

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None
    shard_selector: str = ""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of create, update and patch.

    Attributes:
        dry_run: whether nothing is to be stored.
        field_manager: the parameter fieldManager; "" if it is unset.
        sent_validation: the parameter fieldValidation; "" if it is unset.
        force: whether server-side apply takes over fields of other managers; False for other requests.
    """

    dry_run: bool = False
    field_manager: str = ""
    sent_validation: str = ""
    force: bool = False

    @property
    def field_validation(self) -> str:
        """The effective fieldValidation: "Ignore", "Warn" or "Strict"."""
        return self.sent_validation or "Warn"

    def to_object(self, kind: str) -> Object:
        """Return the options as an object of `kind` ("CreateOptions", …) for admission; unset options are omitted."""
        obj: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            obj["dryRun"] = ["All"]
        if kind == "PatchOptions" and self.force:
            obj["force"] = True
        if self.field_manager:
            obj["fieldManager"] = self.field_manager
        if self.sent_validation:
            obj["fieldValidation"] = self.sent_validation
        return obj


DEFAULT_WRITE_OPTIONS: Final = WriteOptions()


def parse_int(text: str) -> int:
    """Parse a 64-bit integer like Go's strconv.ParseInt.

    Raises:
        StatusError: 400 with Go's text.
    """
    try:
        return integers.parse_int(text)
    except ValueError as error:
        raise bad_request(str(error)) from None


def _invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    return invalid_object(GroupKind("meta.k8s.io", kind), "", errors)


# --- lists and watches ------------------------------------------------------------------------------------------------


def decode_list_options(query: Values) -> ListOptions:
    """Decode list options, with upstream's defaults for watches (SetListOptionsDefaults).

    A watch without a resource version begins with the existing objects, as if the client had set sendInitialEvents.

    Raises:
        StatusError: 400 for a malformed number.
    """
    if not query:
        return _NO_LIST_OPTIONS
    timeout = parse_int(query["timeoutSeconds"]) if "timeoutSeconds" in query else None
    options = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        watch="watch" in query and query_bool(query["watch"]),
        allow_watch_bookmarks="allowWatchBookmarks" in query and query_bool(query["allowWatchBookmarks"]),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        timeout_seconds=timeout,
        limit=parse_int(query["limit"]) if "limit" in query else 0,
        continue_token=query.get("continue", ""),
        send_initial_events=query_bool(query["sendInitialEvents"]) if "sendInitialEvents" in query else None,
        shard_selector=query.get("shardSelector", ""),
    )
    specifies_start = options.send_initial_events is not None or bool(options.resource_version_match)
    legacy = options.watch and not specifies_start and options.resource_version in ("", "0")
    if legacy and feature_gates.enabled("WatchList"):
        return replace(options, send_initial_events=True, resource_version_match="NotOlderThan")
    return options


_NO_LIST_OPTIONS: Final = ListOptions()


def validate_list_options(options: ListOptions) -> None:
    """Check that list options do not contradict each other.

    Raises:
        StatusError: 422, they do, or an option has an unknown value.
    """
    if options is _NO_LIST_OPTIONS:
        return
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if errors:
        raise _invalid_options("ListOptions", errors)


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    path, match = "resourceVersionMatch", options.resource_version_match
    if match:
        if not options.resource_version:
            errors.append(forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(path, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and options.resource_version == "0":
            errors.append(forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    path, match = "resourceVersionMatch", options.resource_version_match
    if options.send_initial_events is not None and match != "NotOlderThan":
        errors.append(forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if options.send_initial_events is not None and not feature_gates.enabled("WatchList"):
        text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        errors.append(forbidden("sendInitialEvents", text))
    if match:
        if options.send_initial_events is None:
            errors.append(
                forbidden(path, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != "NotOlderThan":
            errors.append(not_supported(path, match, ("NotOlderThan",)))
    if options.continue_token and match:
        errors.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


# --- writes -----------------------------------------------------------------------------------------------------------


def decode_write_options(parsed_query: Query, kind: str, *, apply: bool | None = None) -> WriteOptions:
    """Decode and validate the options of `kind` ("CreateOptions", "UpdateOptions", "PatchOptions").

    Args:
        parsed_query: the query of the request.
        kind: the kind of the options.
        apply: for patches, whether it is server-side apply; else None.

    Raises:
        StatusError: 422, a value is invalid, or an option is missing or not allowed for this kind of patch.
    """
    query = parsed_query.values
    if not query and not apply:
        return DEFAULT_WRITE_OPTIONS
    dry_run = parsed_query.lists.get("dryRun", [])
    manager = query.get("fieldManager", "")
    validation = query.get("fieldValidation", "")
    errors: list[FieldError] = []
    if apply:
        if not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
    elif apply is not None and "force" in query:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors += field_manager_errors(manager)
    errors += _dry_run_errors(dry_run)
    if validation not in FIELD_VALIDATION:
        errors.append(not_supported("fieldValidation", validation, FIELD_VALIDATION, typed=False))
    if errors:
        raise _invalid_options(kind, errors)
    force = bool(apply) and "force" in query and query_bool(query["force"])
    return WriteOptions(bool(dry_run), manager, validation, force)


def field_manager_errors(manager: str) -> list[FieldError]:
    """Return the errors of a field manager's name: longer than 128 bytes, or unprintable characters."""
    errors = []
    if len(manager.encode()) > _MAX_FIELD_MANAGER:
        errors.append(too_long("fieldManager", _MAX_FIELD_MANAGER))
    position = 0
    for char in manager:
        if not char.isprintable():
            text = f"invalid character U+{ord(char):04X} (at position {position})"
            errors.append(invalid("fieldManager", manager, text))
        position += len(char.encode("utf-8", "surrogatepass"))
    return errors


def _dry_run_errors(dry_run: Sequence[Any]) -> list[FieldError]:
    if all(value == "All" for value in dry_run):
        return []
    return [not_supported("dryRun", list(dry_run), ("All",))]


# --- deletion ---------------------------------------------------------------------------------------------------------


def delete_options_from_query(parsed_query: Query) -> Object:
    """Decode the DeleteOptions of a request without a body; a parameter that is not set is absent from the result.

    Raises:
        StatusError: 400 for a malformed number.
    """
    options: Object = {}
    query = parsed_query.values
    if not query:
        return options
    if "gracePeriodSeconds" in query:
        options["gracePeriodSeconds"] = parse_int(query["gracePeriodSeconds"])
    preconditions = {key: query[key] for key in ("uid", "resourceVersion") if query.get(key)}
    if preconditions:
        options["preconditions"] = preconditions
    for key in ("orphanDependents", UNSAFE_DELETION):
        if key in query:
            options[key] = query_bool(query[key])
    if "propagationPolicy" in query:
        options["propagationPolicy"] = query["propagationPolicy"]
    if dry_run := parsed_query.lists.get("dryRun"):
        options["dryRun"] = dry_run
    return options


def delete_options_from_body(body: Object, sent: bytes) -> Object:
    """Return the DeleteOptions in a decoded body, without kind, apiVersion and unknown fields.

    Args:
        body: the decoded body, which is changed.
        sent: the body as it was sent, for errors.

    Raises:
        StatusError: 400 for another kind, an apiVersion without a version, or a field of a wrong type.
    """
    group, version = GroupVersion.parse(body.pop("apiVersion", None) or "")
    if not version and group not in ("", META_GROUP):
        raise bad_request(missing_version(sent.decode("utf-8", "replace")))
    kind = body.pop("kind", None) or DELETE_OPTIONS.kind
    gvk = GroupVersionKind(group, version, kind) if version else GroupVersionKind(META_GROUP, "v1", kind)
    structure = structure_of(DELETE_OPTIONS._replace(kind=kind)) if is_kind_of_options(gvk) else None
    try:
        if structure is not None:
            typed.decode(structure, body)
    except typed.DecodeError as error:
        raise bad_request(str(error)) from None
    if kind != DELETE_OPTIONS.kind:
        raise bad_request(options_error(gvk))
    return body


def drop_disabled_delete_options(options: Object) -> None:
    """Remove the options, in place, whose feature gate is disabled."""
    if not feature_gates.enabled(UNSAFE_DELETION_GATE):
        options.pop(UNSAFE_DELETION, None)


def validate_delete_options(options: Object, *, collection: bool = False) -> None:
    """Check that DeleteOptions are valid and do not contradict each other.

    Args:
        options: the DeleteOptions object.
        collection: whether a collection is deleted, for which unsafe deletion is not allowed.

    Raises:
        StatusError: 422, they are invalid or contradict each other.
    """
    if not options:
        return
    errors: list[FieldError] = []
    policy = options.get("propagationPolicy")
    if policy is not None:
        if "orphanDependents" in options:
            errors.append(
                invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
            )
        if policy not in ("Foreground", "Background", "Orphan"):
            errors.append(not_supported("propagationPolicy", policy, ("Foreground", "Background", "Orphan", "nil")))
    errors += _dry_run_errors(options.get("dryRun", ()))
    unsafe = UNSAFE_DELETION
    if options.get(unsafe):
        excluded = ("propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions")
        errors += [
            invalid(unsafe, True, f"cannot be set together with .{name}") for name in excluded if name in options
        ]
        if collection and not errors:
            errors.append(
                invalid(unsafe, True, "is not allowed with DELETECOLLECTION, try again after removing the option")
            )
    if errors:
        raise _invalid_options("DeleteOptions", errors)
