"""Validation of the resource requirements of containers and pods.

Upstream: pkg/apis/core/validation/validation.go, validateResourceRequirements and validatePodResources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tetrapod.core.podspec.pod_resources import aggregate
from tetrapod.core.podspec.stored import some_container, stored_spec_has
from tetrapod.core.validation import quantities
from tetrapod.core.validation.names import dns_label
from tetrapod.core.validation.quantities import NameCheck, container_resource_name, pod_resource_name, quantity
from tetrapod.machinery import field
from tetrapod.machinery.error_limits import join
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity


def container_resources(resources: Object | None, claims: Collection[str], path: str) -> list[FieldError]:
    """Validate the resource requirements of a container by the rules of `requirements`; None has no errors.

    Args:
        claims: the names in the pod's spec.resourceClaims.
        path: the field path of the requirements, for the errors.
    """
    return requirements(resources, container_resource_name, claims, path) if resources else []


def requirements(resources: Object, check_name: NameCheck, claims: Collection[str], path: str) -> list[FieldError]:
    """Validate resource requirements: names, amounts, requests within limits, huge pages and claims.

    Amounts are not negative, and requests do not exceed limits. Huge pages and extended resources need a limit equal to
    the request. Huge pages are whole numbers of pages, and need cpu or memory beside them.

    Args:
        check_name: returns the errors of the name of a resource.
        claims: the names in the pod's spec.resourceClaims.
        path: the field path of the requirements, for the errors.
    """
    limits = {name: quantity(v) for name, v in (resources.get("limits") or {}).items()}
    requests = {name: quantity(v) for name, v in (resources.get("requests") or {}).items()}
    errors: list[FieldError] = []
    for name, value in limits.items():
        errors += _amount(name, value, check_name, f"{path}.limits[{name}]")
        errors += _huge_pages(name, value, f"{path}.limits[{name}]")
    for name, value in requests.items():
        errors += _amount(name, value, check_name, f"{path}.requests[{name}]")
        errors += _within_limit(name, value, limits, path)
        errors += _huge_pages(name, value, f"{path}.requests[{name}]")
    named = {*limits, *requests}
    if any(map(quantities.is_huge_page, named)) and not named & {"cpu", "memory"}:
        errors.append(field.forbidden(path, "HugePages require cpu or memory"))
    return errors + _claims(resources.get("claims") or [], claims, f"{path}.claims")


def _amount(name: str, value: Quantity, check_name: NameCheck, path: str) -> list[FieldError]:
    return check_name(name, path) + quantities.amount(name, value, path)


def _within_limit(name: str, value: Quantity, limits: dict[str, Quantity], path: str) -> list[FieldError]:
    limit = limits.get(name)
    if limit is None:
        if quantities.may_overcommit(name):
            return []
        return [field.required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    if value != limit and not quantities.may_overcommit(name):
        return [field.invalid(f"{path}.requests", str(value), f"must be equal to {name} limit of {limit}")]
    if value > limit:
        return [field.invalid(f"{path}.requests", str(value), f"must be less than or equal to {name} limit of {limit}")]
    return []


def _huge_pages(name: str, value: Quantity, path: str) -> list[FieldError]:
    if quantities.is_divisible(name, value) or stored_spec_has(_has_indivisible_pages):
        return []
    return [field.invalid(path, str(value), f"{value} is not positive integer multiple of {name}")]


def _has_indivisible_pages(spec: Object) -> bool:
    """Return whether a container or the overhead of a pod has a fraction of a huge page."""
    return _container_has_indivisible_pages(spec) or _indivisible(spec.get("overhead"))


@some_container
def _container_has_indivisible_pages(container: Object) -> bool:
    resources = container.get("resources") or {}
    return _indivisible(resources.get("limits")) or _indivisible(resources.get("requests"))


def _indivisible(listed: Object | None) -> bool:
    return any(not quantities.is_divisible(name, quantity(value)) for name, value in (listed or {}).items())


def _claims(claims: list[Object], known: Collection[str], path: str) -> list[FieldError]:
    """Validate a container's resource claims, which must not repeat.

    Args:
        claims: the claims. Each names an entry of spec.resourceClaims, or one request of it.
        known: the names in the pod's spec.resourceClaims.
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    seen: set[str] = set()
    requests_of: Counter[str] = Counter()
    not_found = ""
    for i, claim in enumerate(claims):
        if field.end_early(errors):
            break
        at, name, request = f"{path}[{i}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(field.required(at))
            continue
        if name in seen:
            errors.append(field.duplicate(at, name))
        else:
            key = f"{name}/{request}" if request else name
            errors += dns_label(request, f"{at}.request") if request else []
            if key in seen:
                errors.append(field.duplicate(at, key))
            else:
                if request:
                    requests_of[name] += 1
                else:
                    errors += [field.duplicate(at, name)] * requests_of[name]
                seen.add(key)
        if name not in known:
            not_found = not_found or _not_found_text(known)
            errors.append(FieldError("FieldValueNotFound", at, not_found, name))
    return errors


def _not_found_text(known: Collection[str]) -> str:
    listed = ": " + join(sorted(set(known)), noun="name") if known else " which is empty"
    return f"must be one of the names in pod.spec.resourceClaims{listed}"


def pod_resources(spec: Object, path: str) -> list[FieldError]:
    """Validate the pod-level requirements in spec.resources; a pod without them is valid.

    Requests must cover the total requests of the containers, and limits of huge pages their total limits. No container
    may have a higher limit than the pod. Claims are forbidden, and Windows pods must not have these requirements.

    Args:
        spec: the PodSpec.
        path: the field path of its `resources`, for errors.
    """
    resources = spec.get("resources")
    if resources is None:
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [field.forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if resources.get("claims") is not None:
        errors.append(field.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    claims = {claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")}
    errors += requirements(resources, pod_resource_name, claims, path)
    requests = {name: quantity(v) for name, v in (resources.get("requests") or {}).items()}
    for name, total in aggregate(spec, "requests").items():
        if name in requests and total > requests[name]:
            text = f"must be greater than or equal to aggregate container requests of {total}"
            errors.append(field.invalid(f"{path}.requests[{name}]", str(requests[name]), text))
    limits = {name: quantity(v) for name, v in (resources.get("limits") or {}).items()}
    for name, total in aggregate(spec, "limits").items():
        if quantities.is_huge_page(name) and name in limits and total > limits[name]:
            text = f"must be greater than or equal to aggregate container limits of {total}"
            errors.append(field.invalid(f"{path}.limits[{name}]", str(limits[name]), text))
    for i, container in enumerate(spec.get("containers") or ()):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            if name in limits and quantity(value) > limits[name]:
                text = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(field.invalid(f"{path}.containers[{i}][{name}].limits", str(quantity(value)), text))
    return errors
