"""LeaseCandidates: each offers a process as candidate of a coordinated leader election.

Upstream: pkg/registry/coordination/leasecandidate/strategy.go and pkg/apis/coordination/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import errors_from, immutable
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.cel.library import versions
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_config_map_key, is_qualified_name
from tetrapod.machinery.table import Column, TableConvertor

OLDEST: Final = "OldestEmulationVersion"
"""The strategy that prefers the candidate with the oldest emulation version."""
_ZERO: Final = versions.Semver((0, 0, 0), ())


def definition() -> ResourceDefinition:
    """Return the resource definition of LeaseCandidates: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        update_validator=validate_update,
        name_validator=validate_name,
        allow_create_on_update=True,
        allow_unconditional_update=False,
        metadata_rules="plain",
    )
    return builtin("coordination.k8s.io", "leasecandidates", strategy, versions=("v1beta1", "v1alpha2"), table=TABLE)


def validate_name(name: str, prefix: bool) -> list[str]:
    """Return the error texts for the name of a LeaseCandidate, which has the rules of a ConfigMap's key.

    It implements the field `name_validator` of `KindStrategy`. `prefix` is not used, because such a key may end with a
    dash.
    """
    return is_config_map_key(name)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Reject a change of spec.leaseName. `validate` checks the other rules of an update."""
    name, old_name = ((obj.get("spec") or {}).get("leaseName") or "" for obj in (new, old))
    return immutable(name, old_name, "spec.leaseName")


def validate(obj: Object) -> list[FieldError]:
    """Validate a new or updated LeaseCandidate.

    leaseName and binaryVersion are required. Versions are semantic versions, and binaryVersion is not below
    emulationVersion. The strategy is a name with a domain, or OldestEmulationVersion, which requires an
    emulationVersion.
    """
    spec, errors = obj.get("spec") or {}, []
    if not spec.get("leaseName"):
        errors.append(field.required("spec.leaseName"))
    emulation, binary = spec.get("emulationVersion") or "", spec.get("binaryVersion") or ""
    emulated = _version(emulation, "spec.emulationVersion", errors) if emulation else _ZERO
    if not binary:
        errors.append(field.required("spec.binaryVersion"))
    running = _version(binary, "spec.binaryVersion", errors) if binary else _ZERO
    if binary and emulation and versions.compare(running, emulated) < 0:
        text = "must be greater than or equal to `emulationVersion`"
        errors.append(field.invalid("spec.binaryVersion", binary, text))
    return errors + _strategy(spec.get("strategy") or "", emulated)


def _version(text: str, path: str, errors: list[FieldError]) -> versions.Semver:
    """Return the semantic version, or 0.0.0 and an error in `errors` if it is invalid.

    Args:
        text: the version.
        path: its field path.
        errors: a list for the error.
    """
    try:
        return versions.parse(text)
    except ValueError:
        errors.append(field.invalid(path, text, "must be a valid semantic version"))
        return _ZERO


def _strategy(strategy: str, emulated: versions.Semver) -> list[FieldError]:
    if not strategy:
        return [field.required("spec.strategy")]
    errors: list[FieldError] = []
    if strategy == OLDEST and versions.compare(emulated, _ZERO) == 0:
        text = f"must be specified when `strategy` is '{OLDEST}'"
        errors.append(field.required("spec.emulationVersion", text))
    return errors + strategy_errors(strategy, "spec.strategy")


def strategy_errors(strategy: str, path: str) -> list[FieldError]:
    """Validate the strategy of a LeaseCandidate or Lease: a name with a domain, or OldestEmulationVersion.

    Args:
        strategy: the strategy.
        path: its field path. Errors append the name once more, as upstream.
    """
    path = f"{path}.strategy"
    if "/" in strategy:
        return errors_from(is_qualified_name, strategy, path)
    return [] if strategy == OLDEST else [field.not_supported(path, strategy, (OLDEST,))]


def _row(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("leaseName", ""),
        spec.get("binaryVersion", ""),
        spec.get("emulationVersion") or "",
        age(obj),
    ]


TABLE: Final = TableConvertor(
    (NAME, Column("LeaseName"), Column("BinaryVersion"), Column("EmulationVersion"), AGE), _row
)
