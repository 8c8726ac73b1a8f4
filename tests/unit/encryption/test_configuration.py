"""Tests of EncryptionConfiguration: it is accepted or rejected as upstream does, in upstream's wording."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tetrapod.core.resources import Dependencies, definitions
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.generic.storage.config import StorageConfig
from tetrapod.generic.storage.encryption.configuration import read_configuration
from tetrapod.generic.storage.encryption.providers import Providers
from tetrapod.generic.storage.encryption.transformer import Identity
from tetrapod.machinery.gvk import GroupResource

SECRET = b64encode(bytes(32)).decode()
HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"
KEYS = f"{{keys: [{{name: key1, secret: {SECRET}}}]}}"
KMS = "{kms: {apiVersion: v2, name: one, endpoint: unix:///kms.sock}}"


def configuration(*entries: tuple[str, str]) -> str:
    """Return a configuration. `entries` are resources and providers, as YAML flow mappings."""
    return (
        HEAD
        + "resources:\n"
        + "".join(f"- resources: {resources}\n  providers: {providers}\n" for resources, providers in entries)
    )


def complaint(path: Path, text: str, *, reload: bool = False) -> str:
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        Providers(read_configuration(str(path), reload=reload)[0])
    return str(caught.value)


IDENTITY = "[{identity: {}}]"
REJECTED = {
    HEAD: "resources: Required value: at least one resources is required",
    configuration(
        ("[]", IDENTITY)
    ): "resources[0].resources: Required value: at least one resources[0].resources is required",
    configuration(
        ("[secrets]", "[]")
    ): "resources[0].providers: Required value: at least one resources[0].providers is required",
    configuration(("[secrets, secrets]", IDENTITY)): 'resources[0].resources: Invalid value: ["secrets","secrets"]: '
    "the same resource cannot be specified multiple times",
    configuration(
        ("[secrets, '*.']", IDENTITY)
    ): 'resources[0].resources: Invalid value: ["secrets","*."]: using overlapping resources '
    "such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked",
    configuration(
        ("['*']", IDENTITY)
    ): "resources[0].resources[0]: Invalid value: \"*\": use '*.' to encrypt all the resources from core "
    "API group or *.* to encrypt all resources",
    configuration(("[Secrets]", IDENTITY)): 'resources[0].resources[0]: Invalid value: "Secrets": '
    "resource name should not contain capital letters",
    configuration(("[events.events.k8s.io]", IDENTITY)): (
        'resources[0].resources[0]: Invalid value: "events.events.k8s.io": '
        "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. "
        "Use 'events' instead in the config file"
    ),
    configuration(
        ("[ingresses.extensions]", IDENTITY)
    ): 'resources[0].resources[0]: Invalid value: "ingresses.extensions": '
    "'extensions' group has been removed and cannot be used for encryption",
    configuration(("['secrets.*']", IDENTITY)): 'resources[0].resources[0]: Invalid value: "secrets.*": '
    "encrypting the same resource across groups is not supported",
    configuration(
        ("[servicenodeportallocations]", IDENTITY)
    ): 'resources[0].resources[0]: Invalid value: "servicenodeportallocations": '
    "resources which do not have REST API/s cannot be encrypted",
    configuration(("[secrets]", "[{}]")): "resources[0].providers[0]: Invalid value: ",
    configuration(
        ("[secrets]", f"[{{aescbc: {KEYS}, identity: {{}}}}]")
    ): "more than one provider specified in a single element, should split into different list elements",
    configuration(("[secrets]", "[{aescbc: {keys: []}}]")): "resources[0].providers[0].aescbc.keys: Required value: "
    "at least one keys is required",
    configuration(
        ("[secrets]", "[{aesgcm: {keys: [{name: a, secret: '!'}]}}]")
    ): 'resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded',
    configuration(
        ("[secrets]", "[{aesgcm: {keys: [{name: a, secret: AAAA}]}}]")
    ): "resources[0].providers[0].aesgcm.keys[0].secret: "
    'Invalid value: "REDACTED": secret is not of the expected length, got 3, expected one of [16 24 32]',
    configuration(("[secrets]", "[{secretbox: {keys: [{}]}}]")): (
        "[resources[0].providers[0].secretbox.keys[0].name: Required value: name "
        "is a mandatory field for a key, resources[0].providers[0].secretbox.keys[0].secret: Required value: secret "
        "is a mandatory field for a key]"
    ),
    configuration(
        ("[secrets]", "[{kms: {apiVersion: v2, name: 'a:b', endpoint: unix:///x}}]")
    ): "resources[0].providers[0].kms.name: "
    "Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':'",
    configuration(
        ("[secrets]", f"[{KMS}, {KMS}]")
    ): 'resources[0].providers[1].kms.name: Invalid value: "one": duplicate KMS provider '
    "name one, names must be unique",
    configuration(
        ("[secrets]", "[{kms: {apiVersion: v2, name: a, endpoint: 'tcp://x'}}]")
    ): "resources[0].providers[0].kms.endpoint: "
    'Invalid value: "tcp://x": unsupported scheme "tcp" for KMS provider, only unix is supported',
    configuration(
        ("[secrets]", "[{kms: {apiVersion: v2, name: a, endpoint: 'unix:///x', cachesize: 3}}]")
    ): "cachesize is not supported in v2",
    configuration(
        ("[secrets]", "[{kms: {apiVersion: v2, name: a, endpoint: 'unix:///x', timeout: -1s}}]")
    ): 'resources[0].providers[0].kms.timeout: Invalid value: "-1s": timeout should be a positive value',
    configuration(
        ("[secrets]", "[{kms: {apiVersion: v2, name: a, endpoint: 'unix:///x', timeout: 0s}}]")
    ): 'resources[0].providers[0].kms.timeout: Invalid value: "0s": timeout should be a positive value',
    configuration(
        ("[secrets]", "[{kms: {apiVersion: v3, name: a, endpoint: 'unix:///x'}}]")
    ): "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported",
    configuration(
        ("[secrets]", "[{kms: {name: a, endpoint: 'unix:///x'}}]")
    ): "error while building transformers: KMSv1 is deprecated and "
    "will only receive security updates going forward. Use KMSv2 instead.",
    configuration(
        ("['*.*']", IDENTITY), ("[secrets]", IDENTITY)
    ): 'error while building transformers: resource "secrets" is masked by earlier rule "*.*"',
    configuration(("['*.']", IDENTITY), ("[secrets]", IDENTITY)): 'resource "secrets" is masked by earlier rule "*."',
    configuration(
        ("[secrets]", "[{rot13: {}}]")
    ): 'strict decoding error: unknown field "resources[0].providers[0].rot13"',
    "": "is empty",
    "kind: Pod\napiVersion: v1\n": 'no kind "Pod" is registered for version "v1"',
}


@pytest.mark.parametrize("text", REJECTED)
def test_a_bad_configuration_is_rejected_with_upstreams_message(tmp_path: Path, text: str) -> None:
    found = complaint(tmp_path / "config.yaml", text)
    assert REJECTED[text] in found
    stage = "building transformers" if "masked by earlier rule" in found or "KMSv1" in found else "parsing file"
    assert found.startswith(f"error while {stage}: ")


def test_encryption_keys_are_never_in_messages(tmp_path: Path) -> None:
    with_keys = [text for text in REJECTED if SECRET in text]
    assert with_keys
    for text in with_keys:
        assert SECRET not in complaint(tmp_path / "config.yaml", text)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=re.escape(f'configuration file "{tmp_path}/x": open {tmp_path}/x: no such file or directory')
    ):
        read_configuration(str(tmp_path / "x"), reload=False)


def test_a_resource_has_its_own_providers_or_its_groups_or_everybodys(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        configuration(
            ("[secrets]", f"[{{aescbc: {KEYS}}}]"),
            ("['*.apps']", f"[{{secretbox: {KEYS}}}]"),
            ("['*.*']", f"[{{aesgcm: {KEYS}}}]"),
        )
    )
    providers = Providers(read_configuration(str(path), reload=False)[0])

    def prefix(group: str, resource: str) -> bytes:
        chosen = providers.transformer(GroupResource(group, resource))
        return chosen._transformers[0].prefix  # type: ignore[attr-defined,no-any-return]

    assert prefix("", "secrets") == b"k8s:enc:aescbc:v1:"
    assert prefix("apps", "deployments") == b"k8s:enc:secretbox:v1:"
    assert prefix("", "configmaps") == prefix("example.com", "widgets") == b"k8s:enc:aesgcm:v1:"


def test_unlisted_resources_are_not_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(configuration(("[secrets]", f"[{{aescbc: {KEYS}}}]")))
    assert isinstance(
        Providers(read_configuration(str(path), reload=False)[0]).transformer(GroupResource("", "pods")), Identity
    )


def test_every_resource_is_known_by_the_name_that_upstream_gives_it() -> None:
    """Only events are stored in another group than the one that serves them."""

    class Anything(Rest, Strategy):  # type: ignore[misc]  # neither default is called
        """A stub of storage and strategy that the test does not call."""

    unused: Any = None
    wrong = {}
    dependencies = Dependencies(defaultdict(Anything), unused, unused, unused, unused, unused)
    for definition in definitions(dependencies):
        if definition.rest is None:
            config = StorageConfig(
                definition.storage_prefix, definition.gvk(definition.storage_version).api_version, definition.kind
            )
            expected = definition.group_resource if definition.group != "events.k8s.io" else GroupResource("", "events")
            if config.group_resource != expected:
                wrong[expected] = config.group_resource
    assert not wrong
