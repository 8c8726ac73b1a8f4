"""Reading and applying of manifests. Namespaces and CustomResourceDefinitions are applied first."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tetrapod.testing.client import ApiError, Client, Object

_FIRST: Final = {"Namespace": 0, "CustomResourceDefinition": 1}
_SERVED_TIMEOUT_SECONDS: Final = 20.0
_SUFFIXES: Final = (".yaml", ".yml", ".json")


def apply(client: Client, manifests: Any, namespace: str) -> list[Object]:
    """Apply manifests and return the stored objects in the order of the manifests.

    Args:
        client: a client of the server.
        manifests: the manifests, in any form that `read` accepts.
        namespace: the namespace of objects that name none.

    Raises:
        ApiError: the server rejected an object.
        LookupError: the kind of an object is not served.
        TimeoutError: a CustomResourceDefinition was not served in time.
    """
    objects = list(read(manifests))
    applied: dict[int, Object] = {}
    for position, obj in sorted(enumerate(objects), key=lambda pair: _FIRST.get(pair[1].get("kind", ""), 2)):
        applied[position] = client.apply(obj, namespace)
        if obj.get("kind") == "CustomResourceDefinition":
            applied[position] = _wait_served(client, applied[position])
    return [applied[position] for position in range(len(objects))]


def read(manifests: Any) -> Iterator[Object]:
    """Yield the objects of manifests.

    Args:
        manifests: YAML text, a file, a directory (its files in alphabetical order), an object, a List, or an iterable
            of these.

    Raises:
        OSError: a file cannot be read.
        TypeError: the manifests have another type.
    """
    if isinstance(manifests, dict):
        if str(manifests.get("kind", "")).endswith("List") and isinstance(manifests.get("items"), list):
            yield from read(manifests["items"])
        else:
            yield manifests
    elif isinstance(manifests, Path) or (isinstance(manifests, str) and "\n" not in manifests and ":" not in manifests):
        yield from _files(Path(manifests))
    elif isinstance(manifests, str):
        import yaml

        for document in yaml.load_all(manifests, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if document is not None:
                yield from read(document)
    elif isinstance(manifests, Iterable):
        for part in manifests:
            yield from read(part)
    else:
        raise TypeError(f"not a manifest: {type(manifests).__name__}")


def _files(path: Path) -> Iterator[Object]:
    files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]
    for file in files:
        text = file.read_text("utf-8")
        yield from read(text + "\n")


def _wait_served(client: Client, definition: Object) -> Object:
    """Wait until all served versions of a CustomResourceDefinition can be used, and return its current state.

    Raises:
        TimeoutError: that is not so after 20 seconds.
    """
    spec = definition["spec"]
    deadline = time.monotonic() + _SERVED_TIMEOUT_SECONDS
    while True:
        try:
            for version in spec["versions"]:
                if version["served"]:
                    client.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            current = client.get(definition["apiVersion"], definition["kind"], definition["metadata"]["name"])
            if any(
                c["type"] == "Established" and c["status"] == "True"
                for c in (current.get("status") or {}).get("conditions") or ()
            ):
                return current
        except (LookupError, ApiError):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"{definition['metadata']['name']} is not served after {_SERVED_TIMEOUT_SECONDS:.0f} s")
        time.sleep(0.005)
