"""Validation of the environment variables of containers.

Upstream: pkg/apis/core/validation/validation.go, ValidateEnv and ValidateEnvFrom.
"""

from __future__ import annotations

from collections.abc import Iterable

from tetrapod.core.podspec.downward import ENV_FIELDS, field_ref, resource_ref
from tetrapod.core.podspec.stored import allows_files_of_variables
from tetrapod.core.validation.names import dns_label, dns_subdomain, errors_from
from tetrapod.core.validation.paths import no_backsteps
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_config_map_key, is_relaxed_env_var_name, name_is_dns_subdomain

_SEVERAL = "may not have more than one field specified at a time"


def variables(env: list[Object], path: str) -> list[FieldError]:
    """Validate `env`: each variable has a valid name, and a value or exactly one source (`valueFrom`), not both.

    Args:
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    for i, variable in enumerate(env):
        at = f"{path}[{i}]"
        if name := variable.get("name"):
            errors += errors_from(is_relaxed_env_var_name, name, f"{at}.name")
        else:
            errors.append(field.required(f"{at}.name"))
        if (source := variable.get("valueFrom")) is not None:
            errors += _value_from(source, variable.get("value") or "", f"{at}.valueFrom")
    return errors


def _value_from(source: Object, value: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    if (ref := source.get("fieldRef")) is not None:
        count += 1
        errors += field_ref(ref, ENV_FIELDS, f"{path}.fieldRef")
    if (ref := source.get("resourceFieldRef")) is not None:
        count += 1
        errors += resource_ref(ref, f"{path}.resourceFieldRef", volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if (ref := source.get(name)) is not None:
            count += 1
            errors += _key_ref(ref, f"{path}.{name}")
    if (ref := source.get("fileKeyRef")) is not None:
        count += 1
        errors += _file_key_ref(ref, f"{path}.fileKeyRef")
    if not count:
        others = "`configMapKeyRef` or `secretKeyRef`"
        if allows_files_of_variables():
            others = "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        text = f"must specify one of: `fieldRef`, `resourceFieldRef`, {others}"
        errors.append(field.invalid(path, "", text))
    elif value:
        errors.append(field.invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(field.invalid(path, "", _SEVERAL))
    return errors


def _key_ref(ref: Object, path: str) -> list[FieldError]:
    errors = dns_subdomain(ref.get("name") or "", f"{path}.name")
    if key := ref.get("key"):
        return errors + errors_from(is_config_map_key, key, f"{path}.key")
    return [*errors, field.required(f"{path}.key")]


def _file_key_ref(ref: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key = ref.get("key") or ""
    errors += errors_from(is_relaxed_env_var_name, key, f"{path}.key") if key else [field.required(f"{path}.key")]
    name = ref.get("volumeName") or ""
    errors += dns_label(name, f"{path}.volumeName") if name else [field.required(f"{path}.volumeName")]
    file = ref.get("path") or ""
    return errors + (no_backsteps(file, f"{path}.path") if file else [field.required(f"{path}.path")])


def volumes_of_files(spec: Object, containers: Iterable[tuple[Object, str]]) -> list[FieldError]:
    """Validate that each fileKeyRef names an emptyDir volume of the pod.

    Args:
        spec: the pod spec.
        containers: all its containers with their field paths.

    Upstream: pkg/apis/core/validation/validation.go, validateFileKeyRefVolumes
    """
    sources = {volume.get("name") or "": volume for volume in spec.get("volumes") or ()}
    errors: list[FieldError] = []
    for container, path in containers:
        for i, variable in enumerate(container.get("env") or ()):
            if (ref := (variable.get("valueFrom") or {}).get("fileKeyRef")) is None:
                continue
            name, at = ref.get("volumeName") or "", f"{path}.env[{i}].valueFrom.fileKeyRef.volumeName"
            if name not in sources:
                errors.append(field.not_found(at, name))
            elif sources[name].get("emptyDir") is None:
                errors.append(field.invalid(at, name, "referenced volume must be of type emptyDir"))
    return errors


def sources(env_from: list[Object], path: str) -> list[FieldError]:
    """Validate `envFrom`: each entry names exactly one ConfigMap or Secret, and a prefix is valid in variable names.

    Args:
        path: the field path of the list, for the errors.
    """
    errors: list[FieldError] = []
    for i, source in enumerate(env_from):
        at, count = f"{path}[{i}]", 0
        if prefix := source.get("prefix"):
            errors += errors_from(is_relaxed_env_var_name, prefix, f"{at}.prefix")
        for kind in ("configMapRef", "secretRef"):
            if (ref := source.get(kind)) is None:
                continue
            count += 1
            if name := ref.get("name"):
                errors += [field.invalid(f"{at}.{kind}.name", name, text) for text in name_is_dns_subdomain(name, True)]
            else:
                errors.append(field.required(f"{at}.{kind}.name"))
        if not count:
            errors.append(field.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif count > 1:
            errors.append(field.invalid(path, "", _SEVERAL))
    return errors
