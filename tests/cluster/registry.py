"""A registry on the machine that has the images of the nodes, for pods that pull an image although the node has it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cluster.image_store import Store
from cluster.processes import Processes
from cluster.settings import HOST, Paths
from support.waiting import until

_PORT: Final = 5000
URL: Final = f"http://{HOST}:{_PORT}"
_CONFIGURATION: Final = """version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {directory}}}}}
http: {{addr: "{address}"}}
"""
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"


def start_registry(paths: Paths, processes: Processes, store: Store) -> None:
    """Start the registry, and push images to it the first time.

    Args:
        paths: its program and the directory of the cluster.
        processes: where the process is recorded.
        store: the images. The files of the registry are there too.
    """
    configuration, pushed = paths.state / "registry.yaml", store.registry / "pushed"
    configuration.write_text(_CONFIGURATION.format(directory=store.registry, address=f"{HOST}:{_PORT}"))
    processes.start("registry", [str(paths.programs / "registry"), "serve", str(configuration)])
    until(lambda: _request("GET", "/v2/") == 200, timeout=20, description="the registry")
    if not pushed.exists():
        _push_all(store.images)
        pushed.touch()


def _push_all(images: Path) -> None:
    """Push the images of a directory that `archives.write_images` made."""
    pushed: dict[str, str] = {}
    for image in json.loads((images / "manifest.json").read_text()):
        for name in image["RepoTags"]:
            _push(images, image, name, pushed)


def repository(name: str) -> tuple[str, str]:
    """Return the path and the tag of an image, without the name of its registry."""
    path, _, tag = name.partition("/")[2].rpartition(":")
    return path, tag


def manifest(config: Path, layers: list[Path]) -> dict[str, Any]:
    """Return the manifest of an image with these files."""
    return {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(config, _CONFIG),
        "layers": [_descriptor(layer, _LAYER) for layer in layers],
    }


def _descriptor(file: Path, media_type: str) -> dict[str, Any]:
    """Return the descriptor of a file that is named after its digest."""
    return {"mediaType": media_type, "digest": f"sha256:{file.stem}", "size": file.stat().st_size}


def _push(images: Path, image: dict[str, Any], name: str, pushed: dict[str, str]) -> None:
    """Push an image.

    Args:
        images: the directory of its files.
        image: its entry in `manifest.json`.
        name: its name.
        pushed: the repository of each blob that the registry has. Those of this image are added.
    """
    path, tag = repository(name)
    config, layers = images / image["Config"], [images / layer for layer in image["Layers"]]
    for file in (config, *layers):
        digest = f"sha256:{file.stem}"
        source = pushed.setdefault(digest, path)
        if source == path:
            _upload(path, digest, file)
        else:
            status = _request("POST", f"/v2/{path}/blobs/uploads/?mount={digest}&from={source}")
            assert status == 201, (status, name)
    body = json.dumps(manifest(config, layers)).encode()
    status = _request("PUT", f"/v2/{path}/manifests/{tag}", body, {"content-type": _MANIFEST})
    assert status == 201, (status, name)


def _upload(path: str, digest: str, file: Path) -> None:
    connection = http.client.HTTPConnection(HOST, _PORT, timeout=60)
    connection.request("POST", f"/v2/{path}/blobs/uploads/")
    answer = connection.getresponse()
    answer.read()
    location = answer.headers["location"]
    separator = "&" if "?" in location else "?"
    headers = {"content-type": "application/octet-stream", "content-length": str(file.stat().st_size)}
    with file.open("rb") as body:
        connection.request("PUT", f"{location}{separator}digest={digest}", body, headers)
        answer = connection.getresponse()
    assert answer.status == 201, (answer.status, answer.read())
    connection.close()


def _request(method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> int:
    """Send a request, and return the status, or 0 if the registry does not answer."""
    connection = http.client.HTTPConnection(HOST, _PORT, timeout=60)
    try:
        connection.request(method, path, body, dict(headers or {}))
        return connection.getresponse().status
    except ConnectionError:
        return 0
    finally:
        connection.close()
