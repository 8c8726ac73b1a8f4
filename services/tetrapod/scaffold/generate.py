"""`init` and `create_api`: the files of a new project, of a new kind and of a further version of a kind."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from tetrapod.scaffold import names
from tetrapod.scaffold.files import render, write_new
from tetrapod.scaffold.project import FILE, KindEntry, Project, ProjectError

_PROJECT: Final = {
    ".dockerignore": "project/dockerignore",
    ".github/workflows/ci.yml": "project/ci.yml",
    ".gitignore": "project/gitignore",
    "Dockerfile": "project/Dockerfile",
    "README.md": "project/README.md",
    "manifests/local/service.yaml": "project/local_service.yaml",
    "manifests/server/account.yaml": "project/account.yaml",
    "manifests/server/deployment.yaml": "project/deployment.yaml",
    "pyproject.toml": "project/pyproject.toml",
    "tests/conftest.py": "project/conftest.py",
    "tests/test_all_kinds.py": "project/test_all_kinds.py",
    "$package/__init__.py": "project/package.py",
    "$package/__main__.py": "project/main.py",
    "$package/py.typed": "project/py.typed",
}
_KIND: Final = {
    "manifests/samples/${module}_$version.yaml": "kind/sample.yaml",
    "tests/test_$module.py": "kind/test_kind.py",
    "$package/$module/__init__.py": "kind/package.py",
    "$package/$module/$version.py": "kind/models.py",
    "$package/$module/kind.py": "kind/kind.py",
    "$package/$module/strategy.py": "kind/strategy.py",
}
_VERSION: Final = {
    "tests/test_${module}_$version.py": "version/test_conversion.py",
    "$package/$module/${version}_conversion.py": "version/conversion.py",
}


def init(directory: Path, name: str, port: int, entry: KindEntry) -> list[str]:
    """Write a new project with one kind, and return the paths of its files.

    Args:
        directory: the directory of the project, created if it is missing.
        name: the name of the project.
        port: the port of its server.
        entry: the kind.

    Raises:
        InvalidName: a name is invalid.
        ProjectError: a file exists already.
    """
    names.check_project(name)
    _check(entry)
    project = Project(name, entry.group, port).with_kind(entry)
    values = _project_values(project, entry)
    contents = {**_rendered(_PROJECT, values), **_rendered(_KIND, values), **_generated(project)}
    return write_new(directory, contents, {})


def create_api(directory: Path, entry: KindEntry) -> list[str]:
    """Add a kind to a project, or a further version to one of its kinds, and return the paths of the written files.

    A further version begins with a copy of the models and of the sample of the storage version.

    Args:
        directory: the directory of the project.
        entry: the kind, with one version.

    Raises:
        InvalidName: a name is invalid.
        ProjectError: the project cannot be read, has the version already, or does not permit the names; a file exists
            already, or a generated file was changed by hand.
    """
    project = Project.load(directory)
    _check(entry)
    existing = project.find(entry.group, entry.kind)
    if existing is None:
        extended = project.with_kind(entry)
        contents = _rendered(_KIND, _project_values(project, entry))
    else:
        if (existing.plural, existing.namespaced) != (entry.plural, entry.namespaced):
            scope = "namespaced" if existing.namespaced else "cluster-scoped"
            raise ProjectError(
                f"{existing.kind} exists with the plural {existing.plural}, {scope}; these cannot change"
            )
        extended = project.with_version(existing, entry.storage_version)
        contents = _further_version(directory, project, existing, entry.storage_version)
    before, after = _generated(project), _generated(extended)
    return write_new(directory, contents, {path: (before[path], after[path]) for path in after})


def _check(entry: KindEntry) -> None:
    names.check_group(entry.group)
    names.check_version(entry.storage_version)
    names.check_kind(entry.kind)
    names.check_plural(entry.plural)


def _further_version(directory: Path, project: Project, existing: KindEntry, version: str) -> dict[str, str]:
    """Return the files of a further version of a kind. The models and the sample are those of the storage version."""
    stored = existing.storage_version
    values = {**_project_values(project, existing), "version": version, "storage_version": stored}
    package = directory / project.package / existing.module
    sample = Path("manifests/samples") / f"{existing.module}_{stored}.yaml"
    try:
        models, manifest = (package / f"{stored}.py").read_text("utf-8"), (directory / sample).read_text("utf-8")
    except OSError as error:
        raise ProjectError(f"{error.filename} cannot be read: {error.strerror}") from None
    first, _, rest = models.partition("\n")
    return {
        **_rendered(_VERSION, values),
        f"{project.package}/{existing.module}/{version}.py": f"{first.replace(stored, version)}\n{rest}",
        f"manifests/samples/{existing.module}_{version}.yaml": manifest.replace(
            f"apiVersion: {existing.group}/{stored}", f"apiVersion: {existing.group}/{version}"
        ),
    }


def _rendered(templates: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    from string import Template

    return {Template(path).substitute(values): render(template, values) for path, template in templates.items()}


def _project_values(project: Project, entry: KindEntry) -> dict[str, str]:
    return {
        "name": project.name,
        "package": project.package,
        "port": str(project.port),
        "tetrapod": _tetrapod_version(),
        "group": entry.group,
        "version": entry.storage_version,
        "kind": entry.kind,
        "singular": entry.kind.lower(),
        "plural": entry.plural,
        "namespaced": str(entry.namespaced),
        "module": entry.module,
        "constant": entry.constant,
    }


def _tetrapod_version() -> str:
    """Return the lowest version of tetrapod-apiserver that the project needs: the installed one, without the patch."""
    try:
        return ".".join(version("tetrapod-apiserver").split(".")[:2])
    except PackageNotFoundError:  # a checkout that is not installed
        return "0.2"


def _generated(project: Project) -> dict[str, str]:
    """Return the files that list all kinds, by path."""
    values = {"name": project.name, "package": project.package, "port": str(project.port)}
    return {
        FILE: project.dump(),
        f"{project.package}/kinds.py": render("generated/kinds.py", {**values, **_kinds(project)}),
        "manifests/server/roles.yaml": render(
            "generated/roles.yaml",
            {**values, "view": _rules(project, write=False), "edit": _rules(project, write=True)},
        ),
        "manifests/apiservices.yaml": "---\n".join(
            render(
                "generated/apiservice.yaml",
                {
                    **values,
                    "group": group,
                    "version": each,
                    "priority": str(10 * (project.versions_of(group).index(each) + 1)),
                },
            )
            for group, each in project.group_versions()
        ),
    }


def _kinds(project: Project) -> dict[str, str]:
    """Return the import statements and the items of the list of kinds, in the form that ruff gives them."""
    imports, items = [], []
    for kind in sorted(project.kinds, key=lambda kind: kind.module):
        module, constant = f"{project.package}.{kind.module}", kind.constant
        further = [f"{kind.module}_{each}" for each in kind.versions[1:]]
        imports.append(f"from {module}.kind import {constant}")
        imports += [
            f"from {module}.{each}_conversion import VERSION as {constant}_{each.upper()}" for each in kind.versions[1:]
        ]
        versions = ", ".join(f"{constant}_{each.upper()}" for each in kind.versions[1:])
        items.append(f"replace({constant}, versions=[{versions}])" if further else constant)
    return {
        "replace": "from dataclasses import replace\n" if any(len(kind.versions) > 1 for kind in project.kinds) else "",
        "imports": "\n".join(imports),
        "items": "".join(f"    {item},\n" for item in items),
    }


def _rules(project: Project, *, write: bool) -> str:
    """Return the rules of a ClusterRole that permits reading or writing all kinds, as YAML.

    Cluster-scoped kinds can only be read, because namespaced roles must not permit to write them.
    """
    verbs = "create, delete, deletecollection, patch, update" if write else "get, list, watch"
    rules = []
    for group in sorted({kind.group for kind in project.kinds}):
        plurals = sorted(k.plural for k in project.kinds if k.group == group and (k.namespaced or not write))
        if plurals:
            rules.append(f"  - apiGroups: [{group}]\n    resources: [{', '.join(plurals)}]\n    verbs: [{verbs}]\n")
    return "rules:\n" + "".join(rules) if rules else "rules: []\n"
