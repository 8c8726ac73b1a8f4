"""The directory in which upstream's suites are built: patched copies of two modules, and the test programs.

It is in the cache directory. Its name contains a digest of the patches, so that a changed patch leads to
another directory. Files of the copies are links to the module cache, except for the patched ones. Serialized objects
of earlier releases, which tests read in the staging directory of Kubernetes' repository, come from the module
k8s.io/api.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from upstream.packages import EXTENSIONS, KUBERNETES, Package

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
_VERSION: Final = "1.37.1"
_STAGED: Final = ("k8s.io/api",)  # modules that tests look for in staging/src
_WRITTEN: Final = ("tests/upstream/results", "docs/reference/upstream-suites.md")
_BUILD_LIMIT: Final = 1800  # seconds for one test program


@dataclass(frozen=True)
class Workspace:
    """The prepared directory, and Go's module cache."""

    directory: Path
    module_cache: Path

    def program(self, package: Package) -> Path:
        """Return the test program. It is called as by `go test`, because tests name managers of fields after it."""
        return self.directory / "programs" / package.file / f"{package.import_path.rsplit('/', 1)[1]}.test"

    def run_directory(self, package: Package) -> Path:
        """Return the directory in which its tests run, because they read files beside them and execute scripts."""
        return self.directory / _base(package.module) / package.directory

    def build(self, package: Package) -> bool:
        """Build a test program if it is missing, and return whether it is there."""
        program = self.program(package)
        if program.exists():
            return True
        partial = program.with_suffix(f".{os.getpid()}")
        partial.parent.mkdir(parents=True, exist_ok=True)
        # The flags of tools/stock.sh: the packages that both need are compiled once.
        command = ["go", "test", "-c", "-p", "2", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
        command += [f"-modfile={self.directory / 'go.mod'}", "-o", str(partial), package.import_path]
        try:
            done = subprocess.run(command, cwd=HERE, env=_environment(), timeout=_BUILD_LIMIT, check=False).returncode
        except subprocess.TimeoutExpired:
            done = -1
        if done or not partial.exists():
            print(f"{package.name} does not build", file=sys.stderr)
            return False
        partial.rename(program)
        return True


def _environment() -> dict[str, str]:
    return {**os.environ, "GOFLAGS": "-mod=readonly"}


def prepare() -> Workspace:
    """Return the workspace, which the first call with these patches makes."""
    sources = _download(KUBERNETES, EXTENSIONS)
    inputs = sorted(path for kind in ("*.patch", "*.go", "go.*", Path(__file__).name) for path in HERE.rglob(kind))
    digest = hashlib.sha256(b"".join(path.name.encode() + path.read_bytes() for path in inputs)).hexdigest()[:12]
    cache_directory = Path(os.environ.get("TETRAPOD_CACHE") or Path.home() / ".cache/tetrapod")
    workspace = Workspace(cache_directory / f"upstream-{_VERSION}" / digest, _module_cache())
    if not workspace.directory.exists():
        partial = workspace.directory.with_suffix(f".{os.getpid()}")
        partial.mkdir(parents=True)
        for module, source in sources.items():
            _copy(source, partial / _base(module))
        _stage(partial / _base(KUBERNETES))
        _patch(partial, sources)
        _write_module_file(partial, workspace.directory, sources)
        try:
            partial.rename(workspace.directory)
        except OSError:  # another process was quicker
            shutil.rmtree(partial)
    return workspace


def _stage(kubernetes: Path) -> None:
    """Link modules to the places in the copy of Kubernetes where its repository has them."""
    for module, source in _download(*_STAGED).items():
        place = kubernetes / "staging" / "src" / module
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(source)


def _download(*modules: str) -> dict[str, Path]:
    """Download the modules through the proxy, checked by go.sum, and return their directories."""
    command = ["go", "mod", "download", "-json", *modules]
    text = subprocess.run(command, cwd=HERE, env=_environment(), check=True, stdout=subprocess.PIPE, text=True).stdout
    decoder, sources = json.JSONDecoder(), {}
    while text := text.lstrip():
        module, end = decoder.raw_decode(text)
        sources[str(module["Path"])] = Path(module["Dir"])
        text = text[end:]
    return sources


def _base(module: str) -> str:
    return module.rsplit("/", 1)[1]


def _module_cache() -> Path:
    command = ["go", "env", "GOMODCACHE"]
    return Path(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def _copy(source: Path, target: Path) -> None:
    """Copy a module, by links if the two directories are on one file system.

    Scripts become executable, which no file in the module cache is, except for one that tests need as it is.
    """

    def link(file: str, other: str) -> str:
        if file.endswith(".sh") and not file.endswith("-not-executable.sh"):
            shutil.copyfile(file, other)
            os.chmod(other, 0o755)
            return other
        try:
            os.link(file, other)
        except OSError:
            shutil.copyfile(file, other)
        return other

    target.mkdir()
    for directory, folders, files in os.walk(source):
        copied = target / Path(directory).relative_to(source)
        for folder in folders:
            (copied / folder).mkdir()
        for file in files:
            link(os.path.join(directory, file), str(copied / file))


def _patch(directory: Path, sources: dict[str, Path]) -> None:
    """Apply the patches. Their paths begin with the last part of the module's name, and not with the directory's."""
    for patch in sorted((HERE / "patches").glob("*.patch")):
        name = next(line for line in patch.read_text().splitlines() if line.startswith("--- a/"))[len("--- a/") :]
        module, path = name.split("/", 1)
        source = next(source for key, source in sources.items() if _base(key) == module)
        file = directory / module / path
        file.unlink()  # a link: the module cache keeps its file
        shutil.copyfile(source / path, file)
        command = ["git", "apply", "-p2", str(patch)]
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(directory)}
        subprocess.run(command, cwd=directory / module, env=environment, check=True)


def _write_module_file(directory: Path, final: Path, sources: dict[str, Path]) -> None:
    """Write a go.mod that replaces the two modules by their copies."""
    lines = [line for line in (HERE / "go.mod").read_text().splitlines() if f"{EXTENSIONS} =>" not in line]
    lines += [f"replace {module} => {final / _base(module)}" for module in sources]
    (directory / "go.mod").write_text("\n".join([*lines, ""]))
    shutil.copyfile(HERE / "go.sum", directory / "go.sum")


@cache
def commit(written: tuple[str, ...] = _WRITTEN) -> str:
    """Return the commit of the working tree, with "-dirty" if files differ from it.

    Args:
        written: paths that do not count, because the caller writes its results there.
    """

    def git(*arguments: str) -> str:
        argv = ["git", *arguments]
        return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--", ".", *(f":!{path}" for path in written))
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("-dirty" if changed else "")
