"""Record the facts of the Kubernetes version in tools/stock/go.mod, and generate all committed data from them.

    python tools/record_kubernetes.py [--keep FOLDER]

It is a part of following a new minor version of Kubernetes (docs/reference/versions.md). It builds kube-apiserver
(tools/stock.sh) and runs it with default flags, with all APIs and gates, and with each release that it can emulate. The
other tools of this folder then write what they generate. If the version has not changed, no file changes. It needs Go,
and the etcd of tools/etcd.sh.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.kube_apiserver import KubeApiserver, running

ROOT: Final = Path(__file__).parents[1]
STOCK: Final = ROOT / "tools/stock"
DATA: Final = ROOT / "services/tetrapod/machinery"
TOKENS: Final = (ROOT / "tests/contract/tokens.csv").read_text()
EMULATED: Final = 3
"""The number of former releases that a server can emulate."""
EVERYTHING: Final = ("--runtime-config=api/all=true", "--feature-gates=AllAlpha=true,AllBeta=true")
MODULES: Final = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
_MESSAGE: Final = re.compile(r"^message (\w+) \{$(.*?)^\}$", re.M | re.S)
_FIELD: Final = re.compile(r"^  (?:(optional|repeated) )?(map<\w+, ?[\w.]+>|[\w.]+) (\w+) = (\d+);$", re.M)
_PACKAGE: Final = re.compile(r"^package ([\w.]+);$", re.M)
_SCALARS: Final = frozenset({"string", "bytes", "bool", "int32", "int64", "double"})

Fields: TypeAlias = dict[str, tuple[int, str, str]]


def minor_version() -> tuple[str, int]:
    """Return the version in tools/stock/go.mod, such as 1.37.1, and its minor version."""
    match = re.search(r"^(?:require)?\s*k8s\.io/kubernetes v(1\.(\d+)\.\d+)$", (STOCK / "go.mod").read_text(), re.M)
    assert match is not None, "tools/stock/go.mod requires no k8s.io/kubernetes"
    return match[1], int(match[2])


def link_modules(folder: Path) -> None:
    """Link the folders of the modules of this version into a folder, as the Go module cache lays them out.

    The module cache itself may hold other versions too.
    """
    names = [f"k8s.io/{name}" for name in MODULES]
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Path}} {{.Version}} {{.Dir}}", *names],
        cwd=STOCK,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for line in listed.splitlines():
        path, version, directory = line.split()
        (folder / f"{path.removeprefix('k8s.io/')}@{version}").symlink_to(directory)


def messages(modules: Path) -> dict[str, Fields]:
    """Return the fields of each message in the generated.proto files: name → number, type, label."""
    found: dict[str, Fields] = {}
    for file in sorted(path for module in modules.iterdir() for path in module.rglob("generated.proto")):
        text = re.sub(r"//.*", "", file.read_text())
        package = _PACKAGE.search(text)
        assert package is not None, file
        for name, body in _MESSAGE.findall(text):
            fields: Fields = {}
            for label, type_, field, number in _FIELD.findall(body):
                fields[field] = (int(number), _absolute(type_, package[1]), "repeated" if label == "repeated" else "")
            found[f"{package[1]}.{name}"] = fields
    return found


def _absolute(type_: str, package: str) -> str:
    if type_.startswith("map<"):
        key, _, value = type_[len("map<") : -1].partition(",")
        return f"map<{key},{_absolute(value.strip(), package)}>"
    if type_ in _SCALARS:
        return type_
    return type_.removeprefix(".") if "." in type_ else f"{package}.{type_}"


@contextmanager
def servers(directory: Path) -> Iterator[dict[str, KubeApiserver]]:
    """Run the servers: `default`, `all`, and one for each emulated release, such as `1.36`."""
    binary = Path(
        subprocess.run([ROOT / "tools/stock.sh", "--where"], check=True, capture_output=True, text=True).stdout.strip()
    )
    if not (binary / "kube-apiserver").exists():
        subprocess.run([ROOT / "tools/stock.sh"], check=True, stdout=subprocess.DEVNULL)
    _, minor = minor_version()
    flags: dict[str, tuple[str, ...]] = {"default": (), "all": EVERYTHING}
    flags |= {
        f"1.{minor - back}": ("--runtime-config=api/all=true", f"--emulated-version=1.{minor - back}")
        for back in range(1, EMULATED + 1)
    }
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(running(binary / "kube-apiserver", directory / name, TOKENS, *given))
            for name, given in flags.items()
        }


def tool(name: str, *arguments: object, stdin: bytes | None = None) -> None:
    """Run another tool of this folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "services"), "TOKEN": TOKENS.partition(",")[0]}
    argv = [sys.executable, str(ROOT / "tools" / name), *map(str, arguments)]
    print(f"== {name}", flush=True)
    subprocess.run(argv, check=True, input=stdin, env=environment, cwd=ROOT)


def record(folder: Path) -> None:
    """Record everything into a folder, and write the committed data."""
    modules = folder / "modules"
    modules.mkdir(parents=True)
    link_modules(modules)
    (folder / "protobuf.json").write_text(json.dumps(messages(modules), indent=1))
    with servers(folder) as running_servers:
        for name, server in running_servers.items():
            tool("record_facts.py", server.url, folder / "facts" / name, server.ca)
        facts = [folder / "facts" / name for name in running_servers]
        _remove("types/data/*.types")
        tool("generate_types.py", modules, *facts)
        every = running_servers["all"]
        tool("generate_enum_texts.py", stdin=_get(every, "/openapi/v2"))
        tool("generate_column_texts.py", every.url, every.ca)
    _remove("protobuf/data/*.messages")
    tool("generate_protobuf.py", folder)
    tool("generate_go_names.py", modules)
    tool("generate_lifecycles.py", modules)
    tool("generate_feature_gates.py")


def _get(server: KubeApiserver, path: str) -> bytes:
    request = urllib.request.Request(
        f"{server.url}{path}", headers={"Authorization": f"Bearer {TOKENS.partition(',')[0]}"}
    )
    with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=server.ca)) as answer:
        body: bytes = answer.read()
    return body


def _remove(pattern: str) -> None:
    """Remove generated files, so that those of packages that upstream removed do not stay."""
    for path in DATA.glob(pattern):
        path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(prog="record_kubernetes", description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what was recorded in this new folder")
    keep: Any = parser.parse_args().keep
    print(f"Kubernetes {minor_version()[0]}")
    if keep is not None:
        record(keep)
        return 0
    with tempfile.TemporaryDirectory() as directory:
        record(Path(directory) / "recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
