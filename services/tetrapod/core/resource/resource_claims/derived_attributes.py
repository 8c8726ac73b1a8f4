"""Validation of derived attributes: attributes that a claim computes from those of a device, for its constraints.

Upstream: pkg/apis/resource/validation/validation.go, validateDeviceDerivedAttributes.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.resource.device_rules import ErrorLists, fully_qualified
from tetrapod.machinery import field
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.gvk import Object

_MOST: Final = 32
_UNUSED: Final = (
    "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request"
)


class ConstrainedAttributes(dict[str, set[str]]):
    """The names of the attributes in the constraints of a claim.

    The key is the request that they apply to, `request/subrequest`, or "" for all requests.
    """

    def use(self, attribute: str, request: str) -> bool:
        """Return whether a constraint of a request names the attribute.

        Args:
            attribute: the name of the attribute.
            request: the name of the request, or `request/subrequest`.
        """
        return any(attribute in self.get(key, ()) for key in ("", request.partition("/")[0], request))


def constrained_attributes(constraints: list[Object]) -> ConstrainedAttributes:
    """Return the names of the attributes in the constraints of a claim."""
    attributes = ConstrainedAttributes()
    for constraint in constraints:
        name = constraint.get("matchAttribute")
        if name is None:
            name = constraint.get("distinctAttribute")
        if name is not None:
            for request in constraint.get("requests") or ("",):
                attributes.setdefault(request, set()).add(name)
    return attributes


def derived_attributes(
    listed: list[Object],
    path: str,
    request: str,
    constrained: ConstrainedAttributes,
    collected: ErrorLists,
    *,
    compiles: bool,
) -> None:
    """Validate the derived attributes of a request, adding errors to `collected`.

    There are at most 32, with unique full names that constraints use, and expressions. Further expressions are not
    compiled, unlike upstream, because a longer list is rejected anyway.

    Args:
        listed: the derived attributes.
        path: their field path, for the errors.
        request: the name of the request, or `request/subrequest`.
        constrained: the attributes that the constraints of the claim name.
        collected: receives the errors.
        compiles: whether the expressions are compiled.
    """
    names = [attribute.get("name") or "" for attribute in listed]
    for i, (name, attribute) in enumerate(zip(names, listed, strict=True)):
        if name and not constrained.use(name, request):
            collected.written.append(field.invalid(f"{path}[{i}].name", name, _UNUSED))
        expression = attribute.get("expression") or ""
        if expression and compiles and i < _MOST:
            at = f"{path}[{i}].expression"
            collected.written += collected.selectors.validate(expression, at, derived=True)
    collected.written += [field.duplicate(f"{path}[{i}]", names[i]) for i in sorted(repeated(names))]
    if not collected.within_limit(listed, path, _MOST):
        return
    for i, (name, attribute) in enumerate(zip(names, listed, strict=True)):
        at = f"{path}[{i}].name"
        collected.declared += fully_qualified(name, at) if name else [field.required(at)]
        if not attribute.get("expression"):
            collected.declared.append(field.required(f"{path}[{i}].expression"))
