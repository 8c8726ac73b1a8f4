"""The definition of DeviceClasses, with their strategy, validation and table columns.

Upstream: pkg/registry/resource/deviceclass/strategy.go and pkg/apis/resource/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.resource import GROUP, hand_written
from tetrapod.core.resource.conversion import VERSIONS
from tetrapod.core.resource.device_rules import ErrorLists, configuration, selectors
from tetrapod.core.resource.resource_claims.validation import MOST
from tetrapod.core.validation.names import errors_from
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_long_name, is_qualified_name
from tetrapod.machinery.raw_extensions import CLASS_PARAMETERS, same_texts
from tetrapod.machinery.table import TableConvertor

TABLE: Final = TableConvertor((NAME, AGE), lambda obj: [name_of(obj), age(obj)])


class DeviceClassStrategy(KindStrategy):
    """A strategy for a spec whose parameters are compared as text, so also by the order of their members."""

    def changes_generation(self, new: Object, old: Object) -> bool:
        return super().changes_generation(new, old) or not same_texts(new, old, CLASS_PARAMETERS)


def definition() -> ResourceDefinition:
    """Return the resource definition of DeviceClasses: versions, strategy, subresources and columns."""
    strategy = DeviceClassStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        name_validator=validate_name,
        generation=("spec",),
        return_deleted_object=True,
        hand_written=hand_written.CLASS,
        gated_fields=FieldGates(GatedFields("DRAExtendedResource", ("spec.extendedResourceName",))),
    )
    return builtin(GROUP, "deviceclasses", strategy, versions=VERSIONS, table=TABLE)


def validate_name(name: str, prefix: bool) -> list[str]:
    """Return [] for any name of a DeviceClass, because `validate` reports errors about it, after all others.

    It implements the field `name_validator` of `KindStrategy`. The arguments are not used.
    """
    return []


def validate(obj: Object) -> list[FieldError]:
    """Validate a new DeviceClass by the rules of `_class`."""
    return _class(obj, {})


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated DeviceClass by the rules of `_class`."""
    return _class(new, old.get("spec") or {})


def _class(obj: Object, existing: Object) -> list[FieldError]:
    """Validate a new or updated DeviceClass.

    There are at most 32 selectors and 32 configurations, all valid. The name is a DNS subdomain, and
    extendedResourceName is the name of an extended resource. Expressions and sizes of configurations that equal the
    stored ones are not checked.

    Args:
        existing: the stored spec, or {} on create.
    """
    spec, errors, name = obj.get("spec") or {}, ErrorLists(), obj["metadata"].get("name") or ""
    errors.declared += errors_from(is_long_name, name, "metadata.name") if name else []
    changed = spec.get("selectors") != existing.get("selectors")
    selectors(spec.get("selectors") or [], "spec.selectors", errors, compiles=changed)
    configs = spec.get("config") or []
    if errors.within_limit(configs, "spec.config", MOST):
        for i, config in enumerate(configs):
            configuration(config, f"spec.config[{i}]", errors, stored=configs == existing.get("config"))
    if (extended := spec.get("extendedResourceName")) is not None:
        errors.declared += _extended_name(extended, "spec.extendedResourceName")
    return errors.all()


def _extended_name(name: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if "/" not in name:
        errors.append(field.invalid(path, name, "a name must be a domain-prefixed path, such as 'example.com/my-prop'"))
    elif "kubernetes.io/" in name:
        errors.append(field.invalid(path, name, 'must not have "kubernetes.io/" domain'))
    if name.startswith("requests."):
        errors.append(field.invalid(path, name, 'must not have "requests." prefix'))
    return errors + [field.invalid(path, name, text) for text in is_qualified_name(f"requests.{name}")]
