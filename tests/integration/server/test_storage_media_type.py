"""--storage-media-type: in which encoding objects are stored, over SQLite, etcd and encryption at rest.

Custom resources, CustomResourceDefinitions and APIServices are always JSON, as in kube-apiserver.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from integration.server.stored_objects import NAMESPACED, OBJECTS, WIDGETS, Client, by_name, fill
from support.etcd import Etcd
from support.kube_apiserver import TOKENS
from support.server import running
from support.services import running_services
from support.waiting import until
from tetrapod.cli.main import main
from tetrapod.generic.storage.encoding import PROTOBUF, is_yaml

pytestmark = pytest.mark.long

JSON_KEYS: Final = (
    "/registry/apiextensions.k8s.io/",
    "/registry/apiregistration.k8s.io/",
    "/registry/example.com/",
)
MAPS: Final = f"{NAMESPACED}/configmaps"
STORED_MAP: Final = "/registry/configmaps/default/a"
PROTOBUF_FLAG: Final = "--storage-media-type=application/vnd.kubernetes.protobuf"
ENCRYPTION: Final = """
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [configmaps, widgets.example.com]
  providers:
  - aescbc: {keys: [{name: key, secret: MDEyMzQ1Njc4OTAxMjM0NQ==}]}
"""


def stored(data_dir: Path) -> dict[str, bytes]:
    """Return the current values of the SQLite database by their keys."""
    path = next(data_dir.glob("**/*.db"))
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        query = "SELECT key, value, MAX(revision) FROM revisions GROUP BY key"
        return {key: value for key, value, _ in database.execute(query) if value is not None}


def encodings(values: Mapping[str, bytes]) -> set[str]:
    """Return the encodings of the values of built-in resources, and check that those of the others are JSON."""
    built_in = {key: value for key, value in values.items() if not key.startswith(JSON_KEYS)}
    others = [value for key, value in values.items() if key.startswith(JSON_KEYS)]
    assert len(others) > 20
    assert all(value.startswith(b"{") for value in others)
    assert len(built_in) > 150
    return {encoding_of(value) for value in built_in.values()}


def encoding_of(value: bytes) -> str:
    if value.startswith(PROTOBUF):
        return "protobuf"
    return "yaml" if is_yaml(value) else "json"


def all_objects(client: Client) -> dict[str, Any]:
    return {path: client.get(f"{path}/a") for path in OBJECTS}


@pytest.fixture
def tokens(tmp_path: Path) -> str:
    file = tmp_path / "tokens.csv"
    file.write_text(TOKENS)
    return f"--token-auth-file={file}"


@pytest.mark.parametrize(
    ("media_type", "encoding"), [("application/vnd.kubernetes.protobuf", "protobuf"), ("application/yaml", "yaml")]
)
def test_objects_are_stored_in_the_encoding_and_read_in_every_encoding(
    tmp_path: Path, tokens: str, media_type: str, encoding: str
) -> None:
    data = tmp_path / "data"
    flag = f"--storage-media-type={media_type}"
    with running(data, tokens, flag) as server:
        client = Client(server.url, server.ca)
        fill(client)
        written = all_objects(client)
        listed = {path: by_name(client.get(path)) for path in OBJECTS}
    assert encodings(stored(data)) == {encoding}
    with running(data, tokens, "--controllers=-*") as server:
        client = Client(server.url, server.ca)
        assert all_objects(client) == written
        assert {path: by_name(client.get(path)) for path in OBJECTS} == listed
        assert encoding_of(stored(data)[STORED_MAP]) == encoding
        # An update that changes nothing stores the object in the present encoding.
        assert client.call("PUT", f"{MAPS}/a", client.get(f"{MAPS}/a"))[0] == 200
        assert encoding_of(stored(data)[STORED_MAP]) == "json"
        as_json = client.get(f"{MAPS}/a")
        assert as_json["metadata"]["resourceVersion"] != written[MAPS]["metadata"]["resourceVersion"]
    with running(data, tokens, flag) as server:
        client = Client(server.url, server.ca)
        assert client.get(f"{MAPS}/a") == as_json
        assert client.call("PUT", f"{MAPS}/a", as_json)[0] == 200
        assert encoding_of(stored(data)[STORED_MAP]) == encoding
        again = client.get(f"{MAPS}/a")
        assert client.call("PUT", f"{MAPS}/a", again) == (200, again)


def test_watches_and_deletions_of_protobuf_have_the_object(tmp_path: Path, tokens: str) -> None:
    with running(tmp_path / "data", tokens, PROTOBUF_FLAG) as server:
        client = Client(server.url, server.ca)
        until(lambda: client.call("GET", "/api/v1/namespaces/default")[0] == 200)
        created = client.create(MAPS, {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"text": "first"}})
        status, changed = client.call("PUT", f"{MAPS}/a", {**created, "data": {"text": "second"}})
        assert status == 200
        assert client.call("DELETE", f"{MAPS}/a")[0] == 200
        since = int(created["metadata"]["resourceVersion"]) - 1
        events = client.get(f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector=x&resourceVersion={since}")
        assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
        assert [events[0]["object"], events[1]["object"]] == [created, changed]
        assert events[2]["object"]["data"] == {"text": "second"}


def test_protobuf_is_encrypted_and_migrated(tmp_path: Path, tokens: str) -> None:
    data, configuration = tmp_path / "data", tmp_path / "encryption.yaml"
    configuration.write_text(ENCRYPTION)
    with running(data, tokens, PROTOBUF_FLAG, f"--encryption-provider-config={configuration}") as server:
        client = Client(server.url, server.ca)
        fill(client)
        written = all_objects(client)
        values = stored(data)
        for key in (STORED_MAP, "/registry/example.com/widgets/default/a"):
            assert values[key].startswith(b"k8s:enc:aescbc:v1:key:")
    archive, restored, moved = tmp_path / "archive", tmp_path / "restored", tmp_path / "moved"
    decrypt = f"--from-encryption-provider-config={configuration}"
    commands = [
        ["backup", "--out", str(archive), "--data-dir", str(data)],
        ["restore", str(archive), "--data-dir", str(restored)],
        ["migrate", "--from", str(restored), "--to", str(moved), decrypt],
    ]
    for command in commands:
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
    assert stored(restored)[STORED_MAP] == values[STORED_MAP]
    assert encodings(stored(moved)) == {"json"}
    with running(moved, tokens) as server:
        client = Client(server.url, server.ca)
        for path, obj in written.items():
            found = client.get(f"{path}/a")
            found["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
            assert found == obj


def test_four_services_store_protobuf(tmp_path: Path, tokens: str) -> None:
    flags = dict.fromkeys(("aggregator", "core", "extensions"), (PROTOBUF_FLAG,))
    with running_services(tmp_path, auth=(PROTOBUF_FLAG, tokens), **flags) as services:
        client = Client(services.address("aggregator"), services.ca)
        fill(client)
        assert by_name(client.get(f"{MAPS}?labelSelector=made%3Dstock"))[("default", "a")]["data"] == {
            "text": "täglich"
        }
        assert client.get(f"{WIDGETS}/a")["spec"] == {"size": 1}
        assert isinstance(services.etcd, Etcd)
        assert encodings(services.etcd.values("/registry/")) == {"protobuf"}


def test_unknown_media_types_are_rejected() -> None:
    result = CliRunner().invoke(main, ["up", "--storage-media-type=application/cbor"])
    assert result.exit_code != 0
    allowed = "application/json, application/vnd.kubernetes.protobuf, application/yaml"
    assert f'--storage-media-type "application/cbor" invalid, allowed values: {allowed}' in result.output


def test_the_default_is_json(tmp_path: Path, tokens: str) -> None:
    with running(tmp_path / "data", tokens, "--storage-media-type=") as server:
        client = Client(server.url, server.ca)
        fill(client)
    assert encodings(stored(tmp_path / "data")) == {"json"}
    assert json.loads(stored(tmp_path / "data")[STORED_MAP])["data"] == {"text": "täglich"}
