"""Loads webhook configurations, policies and bindings from manifest files, with the API's defaults and validation.

Upstream: pkg/admission/plugin/{policy,webhook}/manifest/loader,
staging/src/k8s.io/apiserver/pkg/admission/plugin/{policy,webhook}/manifest/loader
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

import orjson

from tetrapod.core.admissionregistration import (
    mutating_admission_policies,
    mutating_admission_policy_bindings,
    shared_rules,
    validating_admission_policies,
    validating_admission_policy_bindings,
    webhook_configurations,
)
from tetrapod.core.admissionregistration.match_rules import STATIC_SUFFIX
from tetrapod.core.admissionregistration.policy_strategies import GROUP
from tetrapod.generic.admission.manifests.files import read_documents
from tetrapod.generic.admission.manifests.source import Manifests
from tetrapod.generic.configuration.loading import Kinds, load
from tetrapod.generic.configuration.schemas import kind as schema_of_kind
from tetrapod.generic.configuration.schemas import list_of, raw
from tetrapod.machinery.field import FieldError, aggregate
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind, Object
from tetrapod.machinery.metadata import validate_object_meta
from tetrapod.machinery.names import name_is_dns_subdomain
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types import schema_for
from tetrapod.machinery.types.definitions import kinds_of

_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_API_VERSION: Final = f"{GROUP}/v1"


class _Rules(NamedTuple):
    """The rules that apply to objects of one kind in manifest files.

    Attributes:
        default: sets the defaults of an object, in place.
        validate: returns the errors of an object, without those of its metadata.
    """

    default: Callable[[Object], None]
    validate: Callable[[Object], list[FieldError]]


_WEBHOOKS: Final = _Rules(webhook_configurations.set_defaults, webhook_configurations.validate)
_RULES: Final = {
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": _Rules(shared_rules.set_policy_defaults, validating_admission_policies.validate),
    "MutatingAdmissionPolicy": _Rules(shared_rules.set_policy_defaults, mutating_admission_policies.validate),
    "ValidatingAdmissionPolicyBinding": _Rules(
        shared_rules.set_binding_defaults, validating_admission_policy_bindings.validate
    ),
    "MutatingAdmissionPolicyBinding": _Rules(
        shared_rules.set_binding_defaults, mutating_admission_policy_bindings.validate
    ),
}


class _Loaded:
    """The objects of the allowed kinds that have been read so far, by kind and name, with the files they are in."""

    def __init__(self, *kinds: str) -> None:
        self._objects: dict[str, dict[str, Object]] = {kind: {} for kind in kinds}
        self._files: dict[tuple[str, str], str] = {}

    def sorted(self, kind: str) -> list[Object]:
        """Return the objects of a kind, by name."""
        objects = self._objects.get(kind, {})
        return [objects[name] for name in sorted(objects, key=lambda name: name.encode())]

    def add_document(self, data: bytes, path: str) -> None:
        """Add the objects of one document, which is an object, a list of one kind, or a v1 List.

        Raises:
            ValueError: the document cannot be decoded, or an object is invalid; with upstream's text.
        """
        self._add_decoded(load(data, _scheme()), path)

    def _add_decoded(self, decoded: Object, path: str) -> None:
        version, kind = GroupVersion.parse(decoded["apiVersion"]).version, decoded["kind"]
        if kind == "List":
            for item in decoded.get("items") or ():
                try:
                    nested = load(orjson.dumps(item), _scheme())
                except ValueError as error:
                    raise ValueError(f"failed to decode list item: {error}") from None
                self._add_decoded(nested, path)
            return
        single = kind.removesuffix("List")
        if version != "v1" or single not in self._objects:
            raise ValueError(f"unsupported resource type *{version}.{kind}")
        objects = [decoded] if single == kind else decoded.get("items") or []
        for obj in objects:
            obj |= {"apiVersion": _API_VERSION, "kind": single}
            _default_and_validate(obj, single)
        for obj in objects:
            self._add(obj, single, path)

    def _add(self, obj: Object, kind: str, path: str) -> None:
        name, file = obj["metadata"].get("name") or "", go_quote(path)
        if not name:
            raise ValueError(f"resource in file {file} must have a name")
        if not name.endswith(STATIC_SUFFIX):
            raise ValueError(f"{go_quote(name)} in file {file} must have a name ending with {go_quote(STATIC_SUFFIX)}")
        if (former := self._files.get((kind, name))) is not None:
            raise ValueError(
                f"duplicate name {go_quote(name)} found in file {file} (previously seen in {go_quote(former)})"
            )
        self._files[kind, name] = path
        if (error := next(_constraint_errors(obj, kind, name, file), None)) is not None:
            raise ValueError(error)
        self._objects[kind][name] = obj


def load_manifests(directory: str, kind: str, known: str | None = None) -> Manifests:
    """Return the webhook configurations, or the policies and their bindings, in the manifest files of a directory.

    Args:
        directory: the directory.
        kind: the kind of the webhook configurations or policies.
        known: the digest of the files that are in use; None at the first call. If the files still have this digest, the
            result has no objects and no bindings, only the digest.

    Raises:
        ValueError: a file cannot be read, or an object is invalid; with upstream's text.
    """
    documents, digest = read_documents(directory)
    if digest == known:
        return Manifests((), (), digest)
    binding_kind = f"{kind}Binding"
    loaded = _Loaded(kind, binding_kind) if binding_kind in _RULES else _Loaded(kind)
    for document in documents:
        try:
            loaded.add_document(document.data, document.path)
        except ValueError as error:
            raise ValueError(f"error loading {document.path}: {error}") from None
    objects, bindings = loaded.sorted(kind), loaded.sorted(binding_kind)
    names = {obj["metadata"]["name"] for obj in objects}
    for binding in bindings:
        if (policy := binding["spec"]["policyName"]) not in names:
            raise ValueError(
                f"binding {go_quote(binding['metadata']['name'])} references policy {go_quote(policy)} which does not "
                "exist in the manifest directory"
            )
    return Manifests(objects, bindings, digest)


@cache
def _scheme() -> Kinds:
    """Return the schemas of the kinds that upstream's scheme of manifests contains.

    Objects in other versions than v1 are rejected after they have been decoded, so the schemas of v1 serve for them.
    """
    schemas: dict[tuple[str, str], SchemaNode] = {}
    for kind in kinds_of(_API_VERSION):
        schema = schema_for(GroupVersionKind(GROUP, "v1", kind))
        schemas |= {(f"{GROUP}/{version}", kind): schema for version in _VERSIONS}
    for api_version in ("v1", "meta.k8s.io/v1", *(f"{GROUP}/{version}" for version in _VERSIONS)):
        schemas[api_version, "List"] = schema_of_kind("v1.List", metadata=raw(), items=list_of(raw()))
        schemas[api_version, "Status"] = schema_for(GroupVersionKind("", "v1", "Status"))
    return schemas


def _default_and_validate(obj: Object, kind: str) -> None:
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    rules = _RULES[kind]
    rules.default(obj)
    errors = validate_object_meta(obj["metadata"], False, name_is_dns_subdomain) + rules.validate(obj)
    if errors:
        raise ValueError(f"{kind} {go_quote(obj['metadata'].get('name') or '')}: {aggregate(errors)}")


def _constraint_errors(obj: Object, kind: str, name: str, file: str) -> Iterator[str]:
    """Yield errors for features that need the API, which manifest files cannot use.

    These are parameters, Services of webhooks, and policies that are not from manifest files themselves (static).

    Args:
        obj: the object.
        kind: its kind.
        name: its name.
        file: the path of its manifest file in quotes, for the errors.
    """
    spec, quoted = obj.get("spec") or {}, go_quote(name)
    if kind.endswith("WebhookConfiguration"):
        for hook in obj.get("webhooks") or ():
            yield from _client_errors(hook, f"webhook {go_quote(hook['name'])} in {quoted} (file {file})")
    elif kind.endswith("Binding"):
        policy = spec.get("policyName") or ""
        if not policy.endswith(STATIC_SUFFIX):
            yield f"binding {quoted}: spec.policyName {go_quote(policy)} must end with {go_quote(STATIC_SUFFIX)}"
        if spec.get("paramRef") is not None:
            yield f"binding {quoted}: spec.paramRef is not supported for static manifests"
    elif spec.get("paramKind") is not None:
        yield f"{kind} {quoted}: spec.paramKind is not supported for static manifests"


def _client_errors(hook: Object, subject: str) -> Iterator[str]:
    config = hook["clientConfig"]
    if config.get("service") is not None:
        yield (f"{subject}: clientConfig.service is not supported for static manifests; use clientConfig.url instead")
    elif not config.get("url"):
        yield f"{subject}: clientConfig.url is required for static manifests"
