"""Validation of APIServices. Upstream: kube-aggregator/pkg/apis/apiregistration/validation/validation.go."""

from __future__ import annotations

import base64
from typing import Final

from tetrapod.aggregator.apiservice import group_version, name_for
from tetrapod.machinery.field import FieldError, distinct, index, invalid, not_supported, required
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_object_meta
from tetrapod.machinery.names import is_dns1035_label, is_dns1123_subdomain, is_path_segment_name, is_valid_port_number

_STATUSES: Final = ("True", "False", "Unknown")
_LOCAL: Final = "local APIServices may not have"


def validate_api_service(obj: Object) -> list[FieldError]:
    """Return the errors of an APIService's metadata and spec.

    The name is `VERSION.GROUP`. Group, version and priorities are valid. A service has a name, a namespace and a valid
    port; without a service, neither caBundle nor insecureSkipTLSVerify is allowed.
    """
    spec = obj.get("spec") or {}
    group, version = served = group_version(obj)
    wanted = name_for(served)

    def name_errors(name: str, prefix: bool) -> list[str]:
        texts = is_path_segment_name(name)
        return texts or ([] if name == wanted else [f'must be `spec.version+"."+spec.group`: {go_quote(wanted)}'])

    errors = distinct(validate_object_meta(obj["metadata"], False, name_errors))
    if not group and version != "v1":
        errors.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    if group:
        errors += [invalid("spec.group", group, text) for text in is_dns1123_subdomain(group)]
    errors += [invalid("spec.version", version, text) for text in is_dns1035_label(version)]
    for field, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        value = spec.get(field) or 0
        if not 0 < value <= limit:
            errors.append(invalid(f"spec.{field}", value, f"must be positive and less than {limit}"))
    return errors + (_local(spec) if spec.get("service") is None else _external(spec))


def _local(spec: Object) -> list[FieldError]:
    errors = []
    if spec.get("caBundle"):
        size = len(base64.b64decode(spec["caBundle"]))
        errors.append(invalid("spec.caBundle", f"{size} bytes", f"{_LOCAL} a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        errors.append(invalid("spec.insecureSkipTLSVerify", True, f"{_LOCAL} insecureSkipTLSVerify"))
    return errors


def _external(spec: Object) -> list[FieldError]:
    service = spec["service"]
    errors = [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    port = service.get("port", 443)
    errors += [invalid("spec.service.port", port, f"port is not valid: {text}") for text in is_valid_port_number(port)]
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        errors.append(invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present"))
    return errors


def validate_status(obj: Object) -> list[FieldError]:
    """Return an error for each condition in the status that is neither True, False nor Unknown."""
    errors = []
    for i, condition in enumerate((obj.get("status") or {}).get("conditions") or []):
        status = condition.get("status", "")
        if status not in _STATUSES:
            errors.append(not_supported(index("status.conditions", i) + ".status", status, _STATUSES))
    return errors
