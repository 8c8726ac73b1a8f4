"""The definition of PodTemplates, with their validation, warnings and table columns.

Upstream: pkg/registry/core/podtemplate/strategy.go; pkg/printers/internalversion/printers.go, printPodTemplate.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import NAME, containers, labels_text, name_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.podspec.defaults import default_pod_template
from tetrapod.core.podspec.warnings import same_generation, template_warnings
from tetrapod.core.podspec.workloads import pod_template_spec
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def definition() -> ResourceDefinition:
    """Return the resource definition of podtemplates: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        defaults=lambda o: default_pod_template(o.get("template")),
        generation=("template",),
        return_deleted_object=True,
        validator=validate,
        pod_template=("template",),
        warnings=warnings,
    )
    return builtin("", "podtemplates", strategy, table=TABLE)


def validate(obj: Object) -> list[FieldError]:
    """Validate the pod template of a PodTemplate by the rules of `pod_template_spec`."""
    return pod_template_spec(obj.get("template") or {}, "template")


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about the pod template; an update that does not change the generation gives none.

    Args:
        old: the stored object; None on create.
    """
    return [] if same_generation(obj, old) else template_warnings(obj.get("template"), "template")


def _pod_template_row(template: Object) -> list[Any]:
    pod_template_object = template.get("template") or {}
    names, images = containers(pod_template_object.get("spec") or {})
    return [name_of(template), names, images, labels_text((pod_template_object.get("metadata") or {}).get("labels"))]


TABLE: Final = TableConvertor(
    (
        NAME,
        Column("Containers"),
        Column("Images"),
        Column("Pod Labels"),
    ),
    _pod_template_row,
)
