"""Write the descriptions of the columns of built-in resources, taken from a kube-apiserver's Tables.

    TOKEN=… python tools/generate_column_texts.py https://SERVER [CA]

The server must serve all group-versions of its release. Those that only emulated releases have are left out. The
texts come from pkg/printers/internalversion/printers.go and the fields that it refers to. The output,
`machinery/types/data/column_texts.json`, has each text once, and for each column of each resource
(`deployments.apps`) its index.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent.parent / "services/tetrapod/machinery/types/data"
OUTPUT = DATA / "column_texts.json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def listed() -> Iterator[tuple[str, str]]:
    """Yield the name and the path of each resource that can be listed."""
    for entry in json.loads((DATA / "resources.json").read_text()):
        group = entry["group"]
        for version, resources in (entry["versions"] | entry.get("optional", {})).items():
            for resource in resources:
                if "list" in resource["verbs"]:
                    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
                    yield (f"{resource['name']}.{group}" if group else resource["name"]), f"{path}/{resource['name']}"


def columns_of(url: str, context: ssl.SSLContext) -> dict[str, str] | None:
    """Return the descriptions of the columns of a resource; None if the server does not serve it."""
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Accept": TABLE}
    request = urllib.request.Request(f"{url}?limit=1&includeObject=None", headers=headers)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return {column["name"]: column["description"] for column in json.load(answer)["columnDefinitions"]}
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return None


def main() -> None:
    server, ca = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    context = ssl.create_default_context(cafile=ca)
    columns = {name: found for name, path in listed() if (found := columns_of(server + path, context)) is not None}
    texts = sorted({text for described in columns.values() for text in described.values()})
    numbers = {text: number for number, text in enumerate(texts)}
    lines = [
        json.dumps({name: {column: numbers[text] for column, text in columns[name].items()}})[1:-1]
        for name in sorted(columns)
    ]
    written = ",\n".join(json.dumps(text) for text in texts)
    OUTPUT.write_text('{"texts":[\n' + written + '\n],\n"columns":{\n' + ",\n".join(lines) + "\n}}\n")


if __name__ == "__main__":
    main()
