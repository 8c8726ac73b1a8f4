"""Write the feature gates of kube-apiserver, read from upstream's sources.

The output is `services/tetrapod/generic/configuration/feature_gates.txt`.

    python tools/generate_feature_gates.py

It needs Go, and the modules of tools/stock/go.mod. Each line has these fields of a gate:

1. its name.
2. its stage.
3. its default, `on` or `off`.
4. `locked` if the default cannot be changed, else `free`.
5. `read` if a package of kube-apiserver reads it, else `unread`. The others belong to kubelets, schedulers and
   controllers.
6. the gates that it needs.
7. release, stage, default and lock in each former release that can be emulated; the stage PREALPHA is that of a gate
   which the release does not have. Where --min-compatibility-version makes a difference, release/oldest with the
   same follows.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
STOCK = ROOT / "tools/stock"
OUTPUT = ROOT / "services/tetrapod/generic/configuration/feature_gates.txt"
READ = re.compile(r"\b\w*features?\.([A-Z]\w+)|\bEnabled\(([A-Z]\w+)\)")


def main() -> None:
    read = read_gates()
    lines = []
    for line in go("run", "-trimpath", "-buildvcs=false", "./featuregates").splitlines():
        name, stage, default, locked, needs, history = line.split()
        fields = (name, stage, "on" if default == "true" else "off", "locked" if locked == "true" else "free")
        former = history.replace("true:true", "on:locked").replace("false:true", "off:locked")
        former = former.replace("true:false", "on:free").replace("false:false", "off:free")
        lines.append(" ".join((*fields, "read" if name in read else "unread", needs, former)))
    OUTPUT.write_text("\n".join(lines) + "\n")


def go(*args: str) -> str:
    """Return the output of a go command in the module of tools/stock."""
    return subprocess.run(["go", *args], cwd=STOCK, check=True, capture_output=True, text=True).stdout


def read_gates() -> set[str]:
    """Return the names after `features.` and `Enabled(` in Kubernetes' packages of kube-apiserver, tests excluded."""
    listed = go("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.Dir}}{{end}}", "./featuregates")
    names: set[str] = set()
    for line in listed.splitlines():
        package, folder = line.split()
        if package.startswith("k8s.io/"):
            for file in Path(folder).glob("*.go"):
                if not file.name.endswith("_test.go"):
                    pairs = READ.findall(re.sub(r"//.*", "", file.read_text()))
                    names.update(qualified or plain for qualified, plain in pairs)
    return names


if __name__ == "__main__":
    main()
