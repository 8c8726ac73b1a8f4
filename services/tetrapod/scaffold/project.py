"""`Project`: the names of a project and of its kinds, as `tetrapod.yaml` in its directory records them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import yaml

from tetrapod.machinery.version_order import priority_key
from tetrapod.scaffold import names

FILE: Final = "tetrapod.yaml"
_HEADER: Final = (
    "# Written by `tetrapod init` and `tetrapod create api`. The first version of a kind is the storage version.\n"
)


class ProjectError(ValueError):
    """The project cannot be read, or does not permit a change. The text gives the reason."""


@dataclass(frozen=True, slots=True)
class KindEntry:
    """A kind of the project.

    Attributes:
        group: the API group.
        kind: the kind in CamelCase.
        plural: the name of the resource.
        namespaced: whether objects are namespaced.
        versions: the versions; the first is the storage version.
    """

    group: str
    kind: str
    plural: str
    namespaced: bool
    versions: tuple[str, ...]

    @property
    def module(self) -> str:
        """The name of the kind's Python package below that of the project."""
        return names.module_of(self.kind)

    @property
    def constant(self) -> str:
        """The name of the constant that declares the kind. It differs from the class, also of a kind in capitals."""
        constant = self.module.strip("_").upper()
        return f"{constant}_KIND" if constant == self.kind else constant

    @property
    def storage_version(self) -> str:
        """The version in which objects are stored."""
        return self.versions[0]


@dataclass(frozen=True, slots=True)
class Project:
    """A project.

    Attributes:
        name: the name of the project, of its Service and of its namespace.
        group: the group of new kinds, unless another is given.
        port: the port of the server and of its Service.
        kinds: the kinds.
    """

    name: str
    group: str
    port: int
    kinds: tuple[KindEntry, ...] = ()

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return names.package_of(self.name)

    @classmethod
    def load(cls, directory: Path) -> Self:
        """Read the project in a directory.

        Raises:
            ProjectError: the directory has no project, or the file is malformed.
        """
        file = directory / FILE
        try:
            document: dict[str, Any] = yaml.safe_load(file.read_text("utf-8"))
            kinds = tuple(KindEntry(**{**kind, "versions": tuple(kind["versions"])}) for kind in document["kinds"])
            return cls(document["name"], document["group"], int(document["port"]), kinds)
        except FileNotFoundError:
            raise ProjectError(f"{file} does not exist; run this command in a project of `tetrapod init`") from None
        except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
            raise ProjectError(f"{file} cannot be read: {error}") from None

    def dump(self) -> str:
        """Return the content of `tetrapod.yaml`."""
        kinds = [{**asdict(kind), "versions": list(kind.versions)} for kind in self.kinds]
        document = {"name": self.name, "group": self.group, "port": self.port, "kinds": kinds}
        return _HEADER + yaml.safe_dump(document, sort_keys=False)

    def find(self, group: str, kind: str) -> KindEntry | None:
        """Return a kind of the project, or None if it has none of this name in this group."""
        return next((each for each in self.kinds if (each.group, each.kind) == (group, kind)), None)

    def with_kind(self, entry: KindEntry) -> Project:
        """Return the project with a new kind.

        Raises:
            ProjectError: another kind has the same module or the same plural.
        """
        for each in self.kinds:
            if each.module == entry.module:
                raise ProjectError(f"the project has the kind {each.kind} in {each.group}, with the same module")
            if (each.group, each.plural) == (entry.group, entry.plural):
                raise ProjectError(f"the kind {each.kind} has the same plural {each.plural}; set --plural")
        return replace(self, kinds=(*self.kinds, entry))

    def with_version(self, entry: KindEntry, version: str) -> Project:
        """Return the project with a further version of one of its kinds.

        Raises:
            ProjectError: the kind has this version.
        """
        if version in entry.versions:
            raise ProjectError(f"{entry.kind} has the version {version} already")
        extended = replace(entry, versions=(*entry.versions, version))
        return replace(self, kinds=tuple(extended if each == entry else each for each in self.kinds))

    def group_versions(self) -> Iterator[tuple[str, str]]:
        """Yield each group-version that the project serves, by group and then from the least preferred version."""
        for group in sorted({kind.group for kind in self.kinds}):
            for version in self.versions_of(group):
                yield group, version

    def versions_of(self, group: str) -> Sequence[str]:
        """Return the versions of a group, from the least preferred one."""
        return sorted(
            {v for kind in self.kinds if kind.group == group for v in kind.versions}, key=priority_key, reverse=True
        )
