"""StorageVersions, in which API servers report the versions of a resource that they store and can read.

Upstream: pkg/registry/apiserverinternal/storageversion/strategy.go and pkg/apis/apiserverinternal/validation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, UNSET, age, more, name_of, status_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import dns_subdomain, qualified_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import ALL_METADATA, StatusStrategy
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1035_label, is_dns1123_subdomain, regex_text
from tetrapod.machinery.table import Column, TableConvertor

_MOST_SHOWN: Final = 3
_EMPTY: Final = "must be non-empty"
_LABEL_TEXT: Final = (
    "a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character"
)
_NO_COMMON: Final = (
    "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the "
    "supported versions yet"
)


def definition() -> ResourceDefinition:
    """Return the resource definition of StorageVersions: versions, strategy, subresources and columns."""
    strategy = KindStrategy(name_validator=validate_name, has_status=True, allow_unconditional_update=False)
    return builtin(
        "internal.apiserver.k8s.io",
        "storageversions",
        strategy,
        versions=("v1alpha1",),
        table=TABLE,
        subresources={"status": StatusStrategy(strategy, keep_metadata=ALL_METADATA, validate=validate_status)},
    )


def validate_name(name: str, prefix: bool) -> list[str]:
    """Return the error texts for the name of a StorageVersion, which is `group.resource`.

    It implements the field `name_validator` of `KindStrategy`. `prefix` is not used.
    """
    group, dot, resource = name.rpartition(".")
    if not dot:
        return ["name must be in the form of <group>.<resource>"]
    texts = [f"the group segment {text}" for text in is_dns1123_subdomain(group)]
    return texts + [f"the resource segment {text}" for text in is_dns1035_label(resource)]


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the reports of the servers, their common version and the conditions. The stored object is not used."""
    status = new.get("status") or {}
    reports = status.get("storageVersions") or []
    errors: list[FieldError] = []
    servers: set[str] = set()
    for i, report in enumerate(reports):
        path, server = f"status.storageVersions[{i}]", report.get("apiServerID") or ""
        if server in servers:
            errors.append(field.duplicate(f"{path}.apiServerID", server))
        servers.add(server)
        errors += _report(report, path)
    return errors + _common(status, reports) + _conditions(status.get("conditions") or [])


def _report(report: Object, path: str) -> list[FieldError]:
    """Validate the report of one server at `path`: its id and the form of its versions.

    decodableVersions must include encodingVersion and all servedVersions.
    """
    encoding, decodable = report.get("encodingVersion") or "", report.get("decodableVersions") or []
    errors = dns_subdomain(report.get("apiServerID") or "", f"{path}.apiServerID")
    errors += _api_version(encoding, f"{path}.encodingVersion")
    for i, version in enumerate(decodable):
        errors += _api_version(version, f"{path}.decodableVersions[{i}]")
    if encoding not in decodable:
        text = f"decodableVersions must include encodingVersion {encoding}"
        errors.append(field.invalid(f"{path}.decodableVersions", report.get("decodableVersions"), text))
    for i, version in enumerate(report.get("servedVersions") or ()):
        errors += _api_version(version, f"{path}.servedVersions[{i}]")
        if version not in decodable:
            listed = f"[{' '.join(decodable)}]"
            text = f"individual served version : {version} must be included in decodableVersions : {listed}"
            errors.append(field.invalid(f"{path}.servedVersions[{i}]", version, text))
    return errors


def _common(status: Object, reports: list[Object]) -> list[FieldError]:
    """Validate commonEncodingVersion, which is set if and only if all servers report the same version."""
    path, given = "status.commonEncodingVersion", status.get("commonEncodingVersion")
    encodings = {report.get("encodingVersion") or "" for report in reports}
    common = encodings.pop() if len(encodings) == 1 else None
    if given == common:
        return []
    if common is None:
        return [field.invalid(path, given, _NO_COMMON)]
    the = "the common" if given is None else "the actual common"
    return [field.invalid(path, given, f"{the} encoding version is {common}")]


def _conditions(conditions: list[Object]) -> list[FieldError]:
    """Validate conditions: types are unique, type and status are qualified names, and no field is empty.

    As upstream, the paths of the errors lack the name of the list.
    """
    errors: list[FieldError] = []
    seen: dict[str, int] = {}
    for i, condition in enumerate(conditions):
        path, kind = f"status[{i}]", condition.get("type") or ""
        if kind in seen:
            text = f"the type of the condition is not unique, it also appears in conditions[{seen[kind]}]"
            errors.append(field.invalid(f"{path}.type", kind, text))
        seen[kind] = i
        for name in ("type", "status"):
            errors += qualified_name(condition.get(name) or "", f"{path}.{name}")
        errors += [field.required(f"{path}.{name}") for name in ("reason", "message") if not condition.get(name)]
    return errors


def _api_version(api_version: str, path: str) -> list[FieldError]:
    texts = _api_version_texts(api_version)
    return [field.invalid(path, api_version, ",".join(texts))] if texts else []


def _api_version_texts(api_version: str) -> list[str]:
    """Return the error texts for a version with an optional group, such as `apps/v1`."""
    *groups, version = api_version.split("/")
    if len(groups) > 1:
        label = regex_text(_LABEL_TEXT, "[a-z]([-a-z0-9]*[a-z0-9])?", "my-name", "abc-123")
        return [
            f"an apiVersion is {label} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')"
        ]
    texts = [text for group in groups for text in _part("group", group, is_dns1123_subdomain)]
    return texts + _part("version", version, is_dns1035_label)


def _part(name: str, value: str, check: Callable[[str], list[str]]) -> list[str]:
    return [f"{name} part: {text}" for text in (check(value) if value else [_EMPTY])]


def _row(obj: Object) -> list[Any]:
    status = status_of(obj)
    common = status.get("commonEncodingVersion")
    reports = status.get("storageVersions") or ()
    servers = (f"{report.get('apiServerID', '')}={report.get('encodingVersion', '')}" for report in reports)
    return [name_of(obj), UNSET if common is None else common, more(servers, _MOST_SHOWN) or UNSET, age(obj)]


TABLE: Final = TableConvertor((NAME, Column("CommonEncodingVersion"), Column("StorageVersions"), AGE), _row)
