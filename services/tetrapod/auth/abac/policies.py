"""Attribute-based access control: the policy file of --authorization-policy-file, and its authorizer.

The file has one policy on each line. A line without a version is v0. Decoding is lenient: unknown fields are ignored.

Upstream: pkg/auth/authorizer/abac/abac.go, pkg/apis/abac/{v0,v1beta1}.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision, ResolvedRules
from tetrapod.generic.configuration.files import read
from tetrapod.generic.configuration.loading import Kinds, NotRegistered, check, load
from tetrapod.generic.configuration.schemas import boolean, kind, string, struct
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer import json, yaml
from tetrapod.machinery.serializer.type_meta import recognize
from tetrapod.machinery.user import ALL_AUTHENTICATED, UserInfo

log = logging.getLogger(__name__)

_GROUP: Final = "abac.authorization.kubernetes.io"
_V0, _V1BETA1 = f"{_GROUP}/v0", f"{_GROUP}/v1beta1"
_LINE_LIMIT: Final = 64 * 1024
_READING: Final = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy in the form of v1beta1; `*` in a field matches every value.

    Attributes:
        user: the user name. It is ignored if it is empty and `group` is set.
        group: a group of the user. It is ignored if it is empty and `user` is set.
        readonly: whether the policy allows only get, list and watch.
        api_group: the API group; "" matches only the core group.
        resource: the plural name of the resource; "" matches no resource.
        namespace: the namespace; "" matches only cluster-scoped requests.
        path: the path of a non-resource request, which may end with `*`; "" matches no path.
    """

    user: str = ""
    group: str = ""
    readonly: bool = False
    api_group: str = ""
    resource: str = ""
    namespace: str = ""
    path: str = ""

    def is_for(self, user: UserInfo) -> bool:
        """Return whether the policy applies to the user: its user and group match, and at least one of them is set."""
        if self.user not in ("", "*", user.name):
            return False
        if self.group not in ("", "*") and self.group not in user.groups:
            return False
        return bool(self.user or self.group)

    def allows(self, attributes: Attributes) -> bool:
        """Return whether this policy allows the request: the user, the verb, and the resource or path match."""
        if not self.is_for(attributes.user) or (self.readonly and attributes.verb not in _READING):
            return False
        if attributes.resource_request:
            compared = (
                (self.namespace, attributes.namespace),
                (self.resource, attributes.resource),
                (self.api_group, attributes.group),
            )
            return all(own in ("*", wanted) for own, wanted in compared)
        if self.path in ("*", attributes.path):
            return True
        return self.path.endswith("*") and attributes.path.startswith(self.path.rstrip("*"))

    @property
    def verbs(self) -> list[str]:
        """The verbs that the policy allows, for rules: get, list and watch if it is read-only, else `*`."""
        return list(_READING) if self.readonly else ["*"]


class AbacAuthorizer:
    """The authorizer and rule resolver over a list of policies. It allows a request if one policy does."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = tuple(policies)

    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        if any(policy.allows(attributes) for policy in self._policies):
            return AuthorizationResult(Decision.ALLOW)
        return AuthorizationResult(Decision.NO_OPINION, "No policy matched.")

    async def rules_for(self, user: UserInfo, namespace: str) -> ResolvedRules:
        policies = [p for p in self._policies if p.is_for(user) and p.namespace in ("*", namespace)]
        resources: list[dict[str, Any]] = [
            {"verbs": p.verbs, "apiGroups": [p.api_group], "resources": [p.resource]} for p in policies if p.resource
        ]
        paths: list[dict[str, Any]] = [{"verbs": p.verbs, "nonResourceURLs": [p.path]} for p in policies if p.path]
        return ResolvedRules(resources, paths, False, "")


def read_policies(path: str) -> list[Policy]:
    """Return the policies of a policy file, in order.

    Args:
        path: the path of the file.

    Raises:
        ValueError: the file cannot be read, or a line is invalid; the text has the file and the reason, and the number
            and text of the line unless it is too long.
    """
    return list(_policies(path, read(path)))


def _policies(path: str, data: bytes) -> Iterator[Policy]:
    unversioned = False
    for number, line in enumerate(data.split(b"\n"), 1):
        if len(line) >= _LINE_LIMIT:
            raise ValueError(f"error reading policy file {path}: bufio.Scanner: token too long")
        text = line.removesuffix(b"\r")
        if not text.strip() or text.strip().startswith(b"#"):
            continue
        try:
            try:
                obj = load(text, _kinds(), strict=False)
            except NotRegistered:
                obj, unversioned = _unversioned(text), True
        except ValueError as error:
            raise ValueError(
                f"error reading policy file {path}, line {number}: {text.decode('utf-8', 'replace')}: {error}"
            ) from None
        yield _v1beta1(obj["spec"]) if obj.get("apiVersion") == _V1BETA1 else _v0(obj)
    if unversioned:
        log.warning(
            "Policy file %s contained unversioned rules. See docs/admin/authorization.md#abac-mode for ABAC file "
            "format details.",
            path,
        )


def _unversioned(text: bytes) -> Object:
    """Decode a v0 policy without apiVersion from a line.

    Raises:
        ValueError: it is invalid.
    """
    decoded = json.decode(text) if text.lstrip().startswith(b"{") else yaml.decode(text)
    obj, api_version, kind_ = recognize(decoded.obj)
    if (api_version or _V0, kind_ or "Policy") != (_V0, "Policy"):
        load(text, _kinds(), strict=False)  # raises the error that describes it
    check(obj, _kinds()[_V0, "Policy"], None, [], strict=False)
    return obj


def _kinds() -> Kinds:
    subject = {"user": string(), "group": string(), "readonly": boolean(), "resource": string(), "namespace": string()}
    spec = struct("v1beta1.PolicySpec", **subject, apiGroup=string(), nonResourcePath=string())
    spec.presence = "="
    return {(_V0, "Policy"): kind("Policy", **subject), (_V1BETA1, "Policy"): kind("Policy", spec=spec)}


def _v0(obj: Object) -> Policy:
    """Convert a v0 policy, in which missing fields match everything, to the form of v1beta1."""
    user, group = obj.get("user", ""), obj.get("group", "")
    namespace, resource = obj.get("namespace", ""), obj.get("resource", "")
    if (not user and not group) or "*" in (user, group):
        group = ALL_AUTHENTICATED
        user = "" if "*" in (obj.get("user"), obj.get("group")) else user
    return Policy(
        user,
        group,
        obj.get("readonly", False),
        "*",
        resource or "*",
        namespace or "*",
        "" if namespace or resource else "*",
    )


def _v1beta1(spec: Object) -> Policy:
    user, group = spec.get("user", ""), spec.get("group", "")
    if "*" in (user, group):
        user, group = "", ALL_AUTHENTICATED
    return Policy(
        user,
        group,
        spec.get("readonly", False),
        spec.get("apiGroup", ""),
        spec.get("resource", ""),
        spec.get("namespace", ""),
        spec.get("nonResourcePath", ""),
    )
