"""Write the prose of built-in types that the build requirement does not have (`machinery/types/data/enum_texts.json`).

    curl -H "Authorization: Bearer $TOKEN" https://SERVER/openapi/v2 | python tools/generate_enum_texts.py

kubernetes-validate's texts (hatch_build.py) come from upstream's static snapshot, which is made with the feature gate
OpenAPIEnums off. A server describes the values of an enum at the end of the description of each field of that type. The
output lists these endings, each with its fields, and the descriptions of the types that the snapshot shows as plain
JSON types.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

OUTPUT = Path(__file__).parent.parent / "services/tetrapod/machinery/types/data/enum_texts.json"
JSONS_OWN = ("io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString")
END = re.compile(r"\n*Possible enum values:\n.*", re.DOTALL)


def main() -> None:
    definitions = json.load(sys.stdin)["definitions"]
    ends: dict[str, list[str]] = defaultdict(list)
    for name, schema in sorted(definitions.items()):
        if not OUTPUT.with_name(f"{name.rpartition('.')[0]}.types").is_file():
            continue
        for field, child in sorted(schema.get("properties", {}).items()):
            if found := END.search(child.get("description", "")):
                ends[found[0]].append(f"{name}.{field}")
    lines = [json.dumps([end, *fields]) for end, fields in sorted(ends.items())]
    lines += [json.dumps([definitions[name]["description"], name]) for name in JSONS_OWN]
    OUTPUT.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
