"""Build hook: writes the descriptions of the built-in types into the package.

They are upstream's prose that `kubectl explain` shows, and come from the build requirement kubernetes-validate, so that
they need not be committed. Runs for wheels and editable installs alike. Where the requirement is not there (a build
without isolation), the package is built without descriptions.
"""

from __future__ import annotations

import importlib.util
import json
import os
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VERSION = "v1.37.0"
TARGET = "services/tetrapod/machinery/types/data/descriptions.zip"


class DescriptionsHook(BuildHookInterface):  # type: ignore[misc, type-arg]
    """Named `custom` in pyproject.toml."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        definitions = self._definitions()
        if definitions is None:
            self.app.display_warning("kubernetes-validate is not installed: building without descriptions")
            return
        write(definitions, Path(self.root) / TARGET)
        build_data["artifacts"].append(TARGET)

    def _definitions(self) -> dict[str, Any] | None:
        spec = importlib.util.find_spec("kubernetes_validate")
        if spec is None or not spec.submodule_search_locations:
            return None
        root = Path(next(iter(spec.submodule_search_locations)))
        file = root / "kubernetes-json-schema" / f"{VERSION}-local" / "_definitions.json"
        found: dict[str, Any] = json.loads(file.read_text())["$defs"]
        return found


def write(definitions: dict[str, Any], target: Path) -> None:
    """Write a zip with a JSON member for each Go package with facts: name → [description, field → description].

    The zip is written under another name and then renamed. A server that runs from the source tree therefore never
    reads a half-written file.
    """
    packages: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, schema in sorted(definitions.items()):
        package, _, short = name.rpartition(".")
        if (target.parent / f"{package}.types").is_file():
            fields = {
                field: text
                for field, child in schema.get("properties", {}).items()
                if (text := child.get("description"))
            }
            packages[package][short] = [schema.get("description", ""), fields]
    partial = target.with_suffix(f".{os.getpid()}")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for package, texts in packages.items():
            member = zipfile.ZipInfo(f"{package}.json", (2020, 1, 1, 0, 0, 0))
            archive.writestr(member, json.dumps(texts, separators=(",", ":")), zipfile.ZIP_DEFLATED)
    partial.replace(target)
