"""Record the discovery documents and the OpenAPI v3 documents of a kube-apiserver, for `generate_types.py`.

    TOKEN=… python tools/record_facts.py https://SERVER FOLDER [CA]

Descriptions are left out. With `--runtime-config=api/all=true --feature-gates=AllAlpha=true,AllBeta=true` the server
also has the group-versions that are off by default.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.request
from pathlib import Path
from typing import Any

AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"


def without_descriptions(value: Any) -> Any:
    """Return a copy without the texts of descriptions; a field of an object may have the name "description"."""
    if isinstance(value, list):
        return [without_descriptions(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_descriptions(item)
        for key, item in value.items()
        if key != "description" or not isinstance(item, str)
    }


class Server:
    """The kube-apiserver whose documents are read."""

    def __init__(self, url: str, ca: str | None) -> None:
        self._url = url
        self._context = ssl.create_default_context(cafile=ca)

    def get(self, path: str, accept: str = "application/json") -> Any:
        """Return the JSON document at a path."""
        headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Accept": accept}
        request = urllib.request.Request(self._url + path, headers=headers)
        with urllib.request.urlopen(request, context=self._context) as answer:
            return json.load(answer)


def main(server: Server, folder: Path) -> None:
    documents = {f"discovery/aggregated-{root}.json": server.get(f"/{root}", AGGREGATED) for root in ("api", "apis")}
    documents |= {f"discovery/{root}.json": server.get(f"/{root}") for root in ("api", "apis")}
    paths = ["/api/v1"]
    for group in documents["discovery/apis.json"]["groups"]:
        paths += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    documents |= {f"discovery/{file_name(path)}": server.get(path) for path in paths}
    for name, reference in server.get("/openapi/v3")["paths"].items():
        documents[f"openapi-v3/{file_name(name)}"] = without_descriptions(server.get(reference["serverRelativeURL"]))
    for name, document in documents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(document, indent=1, sort_keys=False) + "\n")


def file_name(path: str) -> str:
    return path.strip("/").replace("/", ".") + ".json"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: record_facts.py https://SERVER FOLDER [CA]")
    main(Server(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else None), Path(sys.argv[2]))
