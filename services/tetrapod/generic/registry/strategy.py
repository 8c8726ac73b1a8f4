"""`Strategy`: the rules of a kind. The generic store calls its hooks, which do nothing by default.

Objects are in the storage version. A subresource with its own rules (`status`) has its own strategy, usually a small
subclass.
Upstream: staging/src/k8s.io/apiserver/pkg/registry/rest, RESTCreateStrategy, RESTUpdateStrategy, RESTDeleteStrategy
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.gated_fields import NO_GATES, FieldGates
from tetrapod.generic.registry.generated_names import generate_name
from tetrapod.generic.registry.hand_written import NO_HAND_WRITTEN, HandWritten
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import name_is_dns_subdomain

MetadataRules = Literal["kube", "plain", "own", "late", "none"]
"""How metadata is validated; `Strategy.metadata_rules` describes the values."""
Revalidation = Literal["never", "before finalizers", "after finalizers"]
"""When an update validates generateName by the rule of the kind, and where the errors are."""
_METADATA_LABELS: Final = frozenset({"metadata.name", "metadata.namespace"})


class Strategy:
    """The rules of a kind.

    The default rules are: namespaced objects, selectable metadata.name and metadata.namespace, no graceful deletion, no
    create by update.

    Attributes:
        namespaced: whether objects are in namespaces.
        allow_create_on_update: whether a PUT creates an object that does not exist.
        allow_unconditional_update: whether an update may omit resourceVersion, and then replaces any version.
        has_status: whether there is a status subresource. If so, a new object has `initial_status`, and updates of the
            main resource do not change status.
        initial_status: the status of a new object if `has_status`; None omits it. Built-in kinds have at least {}.
        generation: if set, metadata.generation starts at 1 and is incremented when one of these top-level fields
            changes, such as ("spec",).
        distinguishes_empty: whether the generation also changes between empty and absent values, for kinds that
            upstream compares with reflect.DeepEqual.
        garbage_collection_default: the propagation policy without DeleteOptions: "Background", "Orphan" (Job), or
            "Unsupported" (Event: no finalizers).
        return_deleted_object: whether DELETE responds with the object instead of a Status.
        tabular: for a subresource, whether it can be requested as a Table. Upstream does not support that for some.
        field_labels: the labels of field selectors besides metadata.name and metadata.namespace; `selectable_fields`
            returns their values.
        indexed_field: the field that upstream's watch cache indexes; "" for most kinds. If a list selects a value of
            it, a page has a continue token only if a further object has that value.
        qualified_finalizers: whether finalizers need a domain. False for custom resources, CustomResourceDefinition and
            APIService.
        metadata_rules: how metadata is validated. "kube": finalizers need a domain. "plain": finalizers need no domain.
            "own": as "plain", but `validate` returns the errors of a new object's metadata too.
            "late": for kinds whose validation upstream omits metadata; it is validated only if a new object is
            otherwise valid, and its name must be a path segment. "none": not at all, because the server itself writes
            objects that violate the kind's rules.
        revalidates_generate_name: whether updates validate generateName with the kind's rule too, for kinds whose
            ValidateUpdate upstream repeats the whole validation. The errors come before those of finalizers for kinds
            that upstream validates as a new object before it compares the metadata.
        repeats_errors: whether errors of an update are repeated as often as they occur (custom resources) instead of
            being reported once.
        gated_fields: the fields that belong to feature gates. They are dropped after `prepare_for_create` and
            `prepare_for_update`.
        hand_written: the form of errors without the gate DeclarativeValidationBeta.
        unsafe_deletion: whether objects that cannot be read may be deleted. Upstream does not support that for some
            kinds.
    """

    namespaced: bool = True
    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    has_status: bool = False
    initial_status: Mapping[str, Any] | None = None
    generation: tuple[str, ...] | None = None
    distinguishes_empty: bool = False
    garbage_collection_default: str = "Background"
    return_deleted_object: bool = False
    tabular: bool = True
    field_labels: Sequence[str] = ()
    indexed_field: str = ""
    qualified_finalizers: bool = True
    metadata_rules: MetadataRules = "kube"
    revalidates_generate_name: Revalidation = "never"
    repeats_errors: bool = False
    gated_fields: FieldGates = NO_GATES
    hand_written: HandWritten = NO_HAND_WRITTEN
    unsafe_deletion: bool = True

    def default(self, obj: Object, version: str) -> None:
        """Set defaults in `obj`, in place, as upstream's SetDefaults_ functions of this version.

        The defaults of the schema have been set before.
        """

    def default_stored(self, obj: Object, version: str) -> None:
        """Set, in place, the fields that `obj` lacks because a former release or another program stored it.

        The defaults of the schema have been set before. The function sets those of `default`; a kind may add others.
        """
        self.default(obj, version)

    @property
    def has_defaults(self) -> bool:
        """Whether `default_stored` may change an object."""
        kind = type(self)
        return kind.default is not Strategy.default or kind.default_stored is not Strategy.default_stored

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        """Clear fields of `obj` that the user cannot set, and set those that only the server sets, in place."""

    def validate(self, ctx: Context, obj: Object) -> list[FieldError]:
        """Return the errors of a new object, in upstream's order; those of metadata are not included."""
        return []

    def warnings_on_create(self, ctx: Context, obj: Object) -> list[str]:
        """Return the texts of Warning headers for a new, valid object."""
        return []

    def validate_name(self, name: str, prefix: bool) -> list[str]:
        """Return the errors of metadata.name, empty if it is valid. The default requires a DNS subdomain.

        Args:
            prefix: `name` is a generateName, to which random characters are appended.
        """
        return name_is_dns_subdomain(name, prefix)

    def generate_name(self, base: str) -> str:
        """Return a random name that begins with the generateName `base`, which may be cut.

        Upstream: names.SimpleNameGenerator
        """
        return generate_name(base)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        """Restore fields of `new` that the user cannot change, and set those that only the server sets, in place."""

    def changes_generation(self, new: Object, old: Object) -> bool:
        """Return whether an update increments metadata.generation; asked only for kinds that have `generation`."""
        changed = [part for part in self.generation or () if new.get(part) != old.get(part)]
        return (
            bool(changed)
            if self.distinguishes_empty
            else any(not same(new.get(part), old.get(part)) for part in changed)
        )

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        """Return the errors of an update, in upstream's order; those of metadata are not included."""
        return []

    def may_delete_on_update(self, new: Object, old: Object) -> bool:
        """Return whether an update that removes the last finalizer of an object being deleted also removes the object.

        For Namespaces, spec.finalizers count too.
        """
        return True

    def warnings_on_update(self, ctx: Context, new: Object, old: Object) -> list[str]:
        """Return the texts of Warning headers for a valid update."""
        return []

    def canonicalize(self, obj: Object) -> None:
        """Change a valid object in place before it is stored (upstream: Canonicalize). The default changes nothing.

        It is called after validation: Namespaces, for example, set the label kubernetes.io/metadata.name.
        """

    def read_back(self, obj: Object) -> None:
        """Change an object in place as upstream's decoder does when it reads the stored object back.

        It is called after validating admission, which does not see the changes. The default changes nothing.
        """

    async def begin_create(self, ctx: Context, obj: Object) -> Any:
        """Allocate addresses or ports for a new object before it is stored, and set them on `obj`.

        The result is passed to `end_create`. The default allocates nothing.

        Raises:
            StatusError: nothing can be allocated.
        """
        return None

    async def end_create(self, ctx: Context, allocation: Any, succeeded: bool) -> None:
        """Release `allocation`, the result of `begin_create`, unless the object was stored (`succeeded`)."""

    async def begin_update(self, ctx: Context, new: Object, old: Object) -> Any:
        """Allocate the addresses or ports that an update adds, before it is stored, and set them on `new`.

        The result is passed to `end_update`. The default allocates nothing.

        Raises:
            StatusError: nothing can be allocated.
        """
        return None

    async def end_update(self, ctx: Context, allocation: Any, succeeded: bool) -> None:
        """Release `allocation`, the result of `begin_update`, unless the update was stored (`succeeded`).

        If it was stored, release what the old object no longer needs.
        """

    async def after_delete(self, ctx: Context, obj: Object) -> None:
        """Release the addresses and ports that the object had allocated, after it was removed from the store."""

    def check_graceful_delete(self, ctx: Context, obj: Object, options: Object) -> bool:
        """Return whether the object is removed only after a grace period.

        If so, the period in seconds is set in `options["gracePeriodSeconds"]`.
        """
        return False

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        """Return the values of the object's fields that field selectors support, by label.

        metadata.name and metadata.namespace are not included.
        """
        return {}

    def field_label(self, version: str, label: str, value: str) -> tuple[str, str]:
        """Return label and value of a field selector's term, translated from the version of the request.

        Raises:
            ValueError: the label is not supported; with upstream's text.
        """
        named = ("metadata.name",) if self.field_labels and not self.namespaced else _METADATA_LABELS
        if label in named or label in self.field_labels:
            return label, value
        if self.field_labels:
            raise ValueError(f"field label not supported: {label}")
        raise ValueError(f'{go_quote(label)} is not a known field selector: only "metadata.name", "metadata.namespace"')

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        """Return the paths of fields that requests to this endpoint cannot change, such as ("metadata", "labels").

        Server-side apply assigns no manager to them. The paths are those of the API version `version`.
        """
        return []

    def allows_unconditional_update(self, version: str) -> bool:
        """Return `allow_unconditional_update` for requests in a version; a kind may differ between its versions."""
        return self.allow_unconditional_update

    def returns_deleted_object(self, version: str) -> bool:
        """Return `return_deleted_object` for requests in a version; a kind may differ between its versions."""
        return self.return_deleted_object

    def ttl(self, obj: Object) -> int:
        """Return the number of seconds after which the store deletes the object; 0 means never (events: 3600)."""
        return 0
