"""Workloads: the templates of the groups in which the pods of an application are scheduled.

Upstream: pkg/registry/scheduling/workload/strategy.go, and ValidateWorkload in pkg/apis/scheduling/validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tetrapod.core.cells import AGE, NAME, age, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.scheduling import group_types
from tetrapod.core.scheduling.group_types import CLAIMS, COMPOSITE, GROUP, PREEMPTION, TOPOLOGY
from tetrapod.core.validation import declared
from tetrapod.core.validation.declared import Field, Type
from tetrapod.core.validation.differences import internal_list
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.gated_fields import FieldGates, GatedFields
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import TableConvertor

_POD_GROUPS: Final = "podGroupTemplates"
_COMPOSITES: Final = "compositePodGroupTemplates"
_DEEPEST: Final = 4
_TOO_DEEP: Final = f"maximum template hierarchy depth is {_DEEPEST}"
_NO_CHILD: Final = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
_PREEMPTION_FIELD: Final = GatedFields(PREEMPTION, ("preemptionPolicy",))
_LIST_GATES: Final = FieldGates(GatedFields(COMPOSITE, (_COMPOSITES,)))
_COMPOSITE_GATES: Final = FieldGates(_PREEMPTION_FIELD)
_TEMPLATE_GATES: Final = FieldGates(
    GatedFields(TOPOLOGY, ("schedulingConstraints",)), GatedFields(CLAIMS, ("resourceClaims",)), _PREEMPTION_FIELD
)
_PRIORITIES: Final = "detected multiple priority configurations"
_ALL_PRIORITIES: Final = "all priority and priorityClassName values must be identical, detected multiple values"

TABLE: Final = TableConvertor((NAME, AGE), lambda obj: [name_of(obj), age(obj)])
SPEC: Final = Type(
    {
        "controllerRef": Field(type=group_types.CONTROLLER, immutable=True),
        _POD_GROUPS: group_types.templates(group_types.POD_GROUP_TEMPLATE),
        _COMPOSITES: group_types.templates(group_types.COMPOSITE_POD_GROUP_TEMPLATE, gate=COMPOSITE),
    },
    union=(_POD_GROUPS, _COMPOSITES),
)


def definition() -> ResourceDefinition:
    """Return the resource definition of Workloads: versions, strategy, subresources and columns."""
    strategy = WorkloadStrategy(
        validator=validate, whole_update_validator=validate_update, allow_unconditional_update=False
    )
    return builtin(GROUP, "workloads", strategy, versions=("v1beta1", "v1alpha3"), table=TABLE)


class WorkloadStrategy(KindStrategy):
    """The strategy of Workloads.

    Writes drop fields of disabled feature gates that the stored object does not use.
    """

    repeats_errors = True  # one for each removed template

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        _drop_disabled(obj.get("spec") or {}, {})

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        _drop_disabled(new.get("spec") or {}, old.get("spec") or {})


def _drop_disabled(spec: Object, old_spec: Object) -> None:
    """Drop the fields of disabled gates from a spec or a composite template, in place.

    As upstream, PodGroup templates are compared with the stored ones of the same index, and composite templates with
    those of the same name.

    Args:
        old_spec: the stored spec or template, or {} without one.
    """
    _LIST_GATES.drop(spec, old_spec)
    stored = old_spec.get(_POD_GROUPS) or []
    for i, template in enumerate(spec.get(_POD_GROUPS) or ()):
        _TEMPLATE_GATES.drop(template, stored[i] if i < len(stored) else {})
    by_name = {template.get("name"): template for template in old_spec.get(_COMPOSITES) or ()}
    for template in spec.get(_COMPOSITES) or ():
        old_template = by_name.get(template.get("name"), {})
        _COMPOSITE_GATES.drop(template, old_template)
        _drop_disabled(template, old_template)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new Workload by the rules of `SPEC` and of `_hierarchy`."""
    spec = obj.get("spec") or {}
    return _hierarchy(spec) + declared.validate(SPEC, spec, None, "spec", update=False)


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Workload by the rules of `SPEC` and of `_hierarchy`.

    Templates cannot be added or removed, and most of their fields are immutable.
    """
    spec = new.get("spec") or {}
    return _hierarchy(spec) + declared.validate(SPEC, spec, old.get("spec") or {}, "spec", update=True)


def _hierarchy(spec: Object) -> list[FieldError]:
    """Return the errors of the whole tree of templates.

    Names are unique, all priorities are equal, no composite template is empty, and the tree has at most four levels,
    that of the PodGroup templates included.

    Upstream: ValidateWorkloadSpec.
    """
    composites = spec.get(_COMPOSITES) or []
    names = {template.get("name") or "" for template in spec.get(_POD_GROUPS) or ()}
    errors = _unique_names(composites, "spec", names)
    for i, template in enumerate(composites):
        if _depth(template) >= _DEEPEST:  # as upstream, which counts the PodGroup templates as a level
            children = internal_list("CompositePodGroupTemplate", template.get(_COMPOSITES))
            errors.append(field.invalid(f"spec.{_COMPOSITES}[{i}]", children, _TOO_DEEP))
    errors += _priorities(spec)
    for i, template in enumerate(composites):
        errors += _children(template, f"spec.{_COMPOSITES}[{i}]")
    return errors


def _unique_names(templates: list[Object], path: str, names: set[str]) -> list[FieldError]:
    """Return an error for each template with the name of a template in another list of the Workload.

    Names that occur twice in one list are found by the declared rules.

    Args:
        templates: composite templates of one list.
        path: the field path of the object that holds the list.
        names: the names of the lists before, to which those of these templates are added.
    """
    path = field.child(path, _COMPOSITES)
    errors = _taken(templates, path, names)
    for i, template in enumerate(templates):
        at = field.index(path, i)
        errors += _taken(template.get(_POD_GROUPS) or [], field.child(at, _POD_GROUPS), names)
        errors += _unique_names(template.get(_COMPOSITES) or [], at, names)
    return errors


def _taken(templates: list[Object], path: str, names: set[str]) -> list[FieldError]:
    listed = [template.get("name") or "" for template in templates]
    errors = [
        field.duplicate(field.child(field.index(path, i), "name"), name)
        for i, name in enumerate(listed)
        if name in names
    ]
    names.update(listed)
    return errors


def _depth(template: Object) -> int:
    return 1 + max(map(_depth, template.get(_COMPOSITES) or ()), default=0)


def _priorities(spec: Object) -> list[FieldError]:
    """Return an error unless all templates have the same priority and PriorityClass."""
    flat = {_priority(template) for template in spec.get(_POD_GROUPS) or ()}
    if len(flat) > 1:
        return [field.invalid("spec", None, _PRIORITIES)]
    below = {_priority(template) for each in spec.get(_COMPOSITES) or () for template in _tree(each)}
    return [field.invalid("spec", None, _ALL_PRIORITIES)] if below and len(flat | below) > 1 else []


def _priority(template: Object) -> tuple[str, int | None]:
    return template.get("priorityClassName") or "", template.get("priority")


def _tree(template: Object) -> Iterator[Object]:
    """Yield a composite template and all templates below it."""
    yield template
    yield from template.get(_POD_GROUPS) or ()
    for child in template.get(_COMPOSITES) or ():
        yield from _tree(child)


def _children(template: Object, path: str) -> list[FieldError]:
    """Return an error for each composite template, this one or one below it, that has no templates."""
    children = template.get(_COMPOSITES) or []
    errors = []
    if not (children or template.get(_POD_GROUPS)):
        errors.append(field.invalid(path, template.get("name") or "", _NO_CHILD))
    for i, child in enumerate(children):
        errors += _children(child, field.index(field.child(path, _COMPOSITES), i))
    return errors
