"""Write the releases in which the built-in kinds were introduced, deprecated and removed, from Go's sources.

    python tools/generate_lifecycles.py MODULES

MODULES holds the module k8s.io/api as the Go module cache lays it out. The output,
`services/tetrapod/machinery/types/data/lifecycles.txt`, has a line for each kind in the files
`zz_generated.prerelease-lifecycle.go` and `lifecycle.go`: apiVersion, kind, the three releases, and the group-version
and kind of the replacement; `-` for a value that upstream does not give. Lists are left out.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

OUTPUT = Path(__file__).parent.parent / "services/tetrapod/machinery/types/data/lifecycles.txt"
EVENTS = ("Introduced", "Deprecated", "Removed")
FUNCTION = re.compile(
    r"^func \(in \*(\w+)\) APILifecycle(\w+)\(\) .*\{\n\treturn (?:(\d+), (\d+)"
    r'|schema\.GroupVersionKind\{Group: "(.*)", Version: "(.*)", Kind: "(.*)"\})$',
    re.M,
)
GROUP = re.compile(r'^const GroupName = "(.*)"$', re.M)


def lifecycles(folder: Path) -> dict[str, dict[str, str]]:
    """Return the values of each kind in a package by the name of its function."""
    found: dict[str, dict[str, str]] = {}
    written = folder / "lifecycle.go"  # of core/v1, beside the generated file
    text = (folder / "zz_generated.prerelease-lifecycle.go").read_text()
    text += written.read_text() if written.exists() else ""
    for kind, event, major, minor, group, version, replacement in FUNCTION.findall(text):
        value = f"{group}/{version}/{replacement}" if event == "Replacement" else f"{major}.{minor}"
        found.setdefault(kind, {})[event] = value
    return found


def main(modules: Path) -> None:
    lines = []
    for generated in sorted(max(modules.glob("api@*")).glob("*/*/zz_generated.prerelease-lifecycle.go")):
        folder = generated.parent
        group = GROUP.search((folder / "register.go").read_text())
        assert group is not None, folder
        api_version = f"{group[1]}/{folder.name}" if group[1] else folder.name
        for kind, values in sorted(lifecycles(folder).items()):
            if not kind.endswith("List"):
                lines.append(" ".join((api_version, kind, *(values.get(e, "-") for e in (*EVENTS, "Replacement")))))
    OUTPUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
