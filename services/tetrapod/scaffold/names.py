"""Rules for the names of projects, groups, versions and kinds. They are kubebuilder's, and those of Python modules.

Upstream: kubebuilder/pkg/model/resource (gvk.go, resource.go), pkg/internal/validation
"""

from __future__ import annotations

import keyword
import re
import sys
from typing import Final

from tetrapod.machinery.names import is_dns1035_label, is_dns1123_subdomain

_VERSION: Final = r"v\d{1,2}((alpha|beta)\d{1,2})?"
_IN_THE_TEMPLATES: Final = frozenset(
    {"Any", "BaseModel", "Field", "Final", "Kind", "PrinterColumn", "Spec", "Status", "Version"}
)
"""Names that the generated modules define or import."""
_MODULES: Final = frozenset({"kinds"})
"""Modules of a generated package that do not belong to a kind."""


class InvalidName(ValueError):
    """A name that breaks a rule. The text says which."""


def check_project(name: str) -> None:
    """Raise InvalidName unless the name can be that of a Service and, with underscores, of a Python package."""
    if errors := is_dns1035_label(name):
        raise InvalidName(f"the name {name!r} is invalid: {errors[0]}")
    package = package_of(name)
    if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in ("tests", "tetrapod", "pydantic"):
        raise InvalidName(f"the name {name!r} is invalid: the Python package {package} would hide another module")


def check_group(group: str) -> None:
    """Raise InvalidName unless the group is a DNS subdomain with at least one dot."""
    if errors := is_dns1123_subdomain(group):
        raise InvalidName(f"the group {group!r} is invalid: {errors[0]}")
    if "." not in group:
        raise InvalidName(f"the group {group!r} is invalid: it needs a domain, such as {group}.example.com")


def check_version(version: str) -> None:
    """Raise InvalidName unless the version has the form of v1, v2beta1 or v1alpha3."""
    if not re.fullmatch(_VERSION, version, re.ASCII):
        raise InvalidName(
            f"the version {version!r} is invalid: it must match ^{_VERSION}$, such as v1, v1beta1, v1alpha2"
        )


def check_kind(kind: str) -> None:
    """Raise InvalidName unless the kind is in CamelCase, and can be the name of a class and of a module."""
    if errors := is_dns1035_label(kind.lower()):
        raise InvalidName(f"the kind {kind!r} is invalid: in lower case, {errors[0]}")
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", kind, re.ASCII):
        raise InvalidName(f"the kind {kind!r} is invalid: it must be in CamelCase, such as Book or BookShelf")
    if kind.endswith("List"):
        raise InvalidName(f"the kind {kind!r} is invalid: kinds that end with List are those of lists")
    if keyword.iskeyword(kind) or kind in _IN_THE_TEMPLATES or kind.lower() in _MODULES:
        raise InvalidName(f"the kind {kind!r} is invalid: the generated code uses the name")


def check_plural(plural: str) -> None:
    """Raise InvalidName unless the plural is a DNS label that begins with a letter."""
    if errors := is_dns1035_label(plural):
        raise InvalidName(f"the plural {plural!r} is invalid: {errors[0]}")


def plural_of(kind: str) -> str:
    """Return the plural of a kind in lower case by the regular rules of English: boxes, policies, books."""
    singular = kind.lower()
    if re.search(r"(s|x|z|ch|sh)$", singular):
        return singular + "es"
    if re.search(r"[^aeiou]y$", singular):
        return singular[:-1] + "ies"
    return singular + "s"


def package_of(name: str) -> str:
    """Return the name of the Python package of a project."""
    return name.replace("-", "_")


def module_of(kind: str) -> str:
    """Return the name of the Python package of a kind: the kind in lower case, with an underscore after a keyword."""
    module = kind.lower()
    return f"{module}_" if keyword.iskeyword(module) else module
