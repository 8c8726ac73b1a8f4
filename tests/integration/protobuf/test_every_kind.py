"""Upstream's samples of every kind, with every field set, convert from JSON to protobuf and back.

They come with the Go module k8s.io/api (testdata/HEAD), which the program beside this file is built with.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tetrapod.machinery import protobuf
from tetrapod.machinery.gvk import GroupVersion, GroupVersionKind
from tetrapod.machinery.protobuf.messages import UnknownMessageError

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

SOURCE = Path(__file__).parent / "goclient"
_NOT_SERVED_ALONE = {"WatchEvent", "List"}


@pytest.fixture(scope="module")
def samples() -> list[Path]:
    """Return the JSON files; those of protobuf are beside them."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go")
    command = [go, "list", "-m", "-f", "{{.Dir}}", "k8s.io/api"]
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    found = subprocess.run(command, cwd=SOURCE, check=True, capture_output=True, text=True, env=environment)
    return sorted((Path(found.stdout.strip()) / "testdata/HEAD").glob("*.json"))


def test_every_kind_is_the_same_in_both_forms(samples: list[Path]) -> None:
    seen = 0
    for path in samples:
        obj = json.loads(path.read_text())
        if obj.get("kind") in _NOT_SERVED_ALONE or "apiVersion" not in obj:
            continue
        group, version = GroupVersion.parse(obj["apiVersion"])
        kind = GroupVersionKind(group, version, obj["kind"])
        theirs = path.with_suffix(".pb").read_bytes()
        try:
            ours = protobuf.encode(obj)
        except UnknownMessageError:
            continue  # a version that is not served
        # Tetrapod writes fields in the order of the JSON, Go in the order of their numbers
        assert len(ours) == len(theirs), path.name
        assert protobuf.decode(theirs, kind) == obj, path.name
        assert protobuf.decode(ours, kind) == obj, path.name
        seen += 1
    assert seen > 70
