"""`tetrapod init` and `tetrapod create`: a project for an aggregated API server, and its extension."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tetrapod.cli.create_crd import crd

if TYPE_CHECKING:
    from tetrapod.scaffold.project import KindEntry

F = TypeVar("F", bound=Callable[..., Any])


def _of_a_kind(command: F) -> F:
    """Add the options that name a kind to a command."""
    for option in (
        click.option(
            "--cluster-scoped/--namespaced", default=False, help="The scope of the objects.  [default: namespaced]"
        ),
        click.option("--plural", default="", help="The name of the resource.  [default: by the rules of English]"),
        click.option("--kind", required=True, help="The kind in CamelCase, such as Book."),
    ):
        command = option(command)
    return command


def _entry(group: str, version: str, kind: str, plural: str, *, cluster_scoped: bool) -> KindEntry:
    from tetrapod.scaffold.names import plural_of
    from tetrapod.scaffold.project import KindEntry

    return KindEntry(group, kind, plural or plural_of(kind), not cluster_scoped, (version,))


def _report(write: Callable[[], list[str]], directory: Path) -> None:
    """Call `write` and print the paths that it returns. Its errors end the command with a message."""
    try:
        paths = write()
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    for path in paths:
        click.echo(directory / path)


@click.command()
@click.argument("name")
@click.option("--group", required=True, help="The API group, such as library.example.com.")
@click.option("--version", default="v1alpha1", show_default=True, help="The version of the first kind.")
@_of_a_kind
@click.option(
    "--port", type=click.IntRange(1024, 65535), default=7443, show_default=True, help="The port of the server."
)
@click.option("--directory", type=click.Path(path_type=Path), help="The directory of the project.  [default: NAME]")
def init(
    name: str,
    group: str,
    version: str,
    kind: str,
    plural: str,
    cluster_scoped: bool,
    port: int,
    directory: Path | None,
) -> None:
    """Create a project for an aggregated API server.

    It has one kind. NAME is the name of the project, its Service and its namespace. The README in the project explains
    how to build, run, test and deploy it.
    """
    from tetrapod.scaffold.generate import init as generate

    target = directory or Path(name)
    entry = _entry(group, version, kind, plural, cluster_scoped=cluster_scoped)
    _report(lambda: generate(target, name, port, entry), target)
    click.echo(f"\nNext: read {target / 'README.md'}, and write the fields of {kind}.", err=True)


@click.group()
def create() -> None:
    """Add kinds to a project, or generate a CRD."""


@create.command()
@click.option("--group", default="", help="The API group.  [default: that of the project]")
@click.option("--version", required=True, help="The version, such as v1.")
@_of_a_kind
@click.option("--directory", type=click.Path(path_type=Path), default=Path(), help="The directory of the project.")
def api(group: str, version: str, kind: str, plural: str, cluster_scoped: bool, directory: Path) -> None:
    """Add a kind, or a version of a kind, to a project.

    The project is one of `tetrapod init`. A further version begins as a copy of the storage version, with a conversion
    and its tests.
    """
    from tetrapod.scaffold.generate import create_api
    from tetrapod.scaffold.project import Project

    def write() -> list[str]:
        project = Project.load(directory)
        in_group = group or project.group
        existing = project.find(in_group, kind)
        if existing is not None and not plural and not cluster_scoped:
            return create_api(
                directory, _entry(in_group, version, kind, existing.plural, cluster_scoped=not existing.namespaced)
            )
        return create_api(directory, _entry(in_group, version, kind, plural, cluster_scoped=cluster_scoped))

    _report(write, directory)


create.add_command(crd)
