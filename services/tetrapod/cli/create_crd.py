"""`tetrapod create crd`: the CustomResourceDefinition of pydantic models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tetrapod.crds import Column, CustomResource


@click.command()
@click.argument("models", metavar="[VERSION=]MODULE:NAME...", nargs=-1, required=True)
@click.option("--group", default="", help="The API group. Required unless NAME is a CustomResource.")
@click.option("--kind", default="", help="The kind.  [default: the name of the first model]")
@click.option("--plural", default="", help="The name of the resource.  [default: by the rules of English]")
@click.option("--cluster-scoped/--namespaced", default=False, help="The scope.  [default: namespaced]")
@click.option("--storage-version", default="", help="The version in which objects are stored.  [default: the first]")
@click.option("--short-name", "short_names", multiple=True, help="A short name for kubectl. May be repeated.")
@click.option("--category", "categories", multiple=True, help="A category, such as all. May be repeated.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=PATH[:TYPE]",
    help="A column, such as Size=.spec.size:integer. May be repeated.",
)
def crd(models: tuple[str, ...], **options: Any) -> None:
    """Print the CRD of pydantic models.

    Each version has a model. NAME is a model, with the version v1 unless VERSION is given, or a
    `tetrapod.crds.CustomResource`. Modules are found in the current directory too.
    """
    import yaml

    from tetrapod.crds import CustomResource

    loaded = [_load(each) for each in models]
    resource = loaded[0][1]
    try:
        if not isinstance(resource, CustomResource):
            resource = _resource(loaded, **options)
        elif len(loaded) > 1 or any(options.values()):
            raise click.UsageError("a CustomResource is complete: no other model and no option can be given")
        definition = resource.definition()
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    click.echo(yaml.safe_dump(definition, sort_keys=False), nl=False)


def _resource(
    models: Sequence[tuple[str, Any]],
    *,
    group: str,
    kind: str,
    plural: str,
    cluster_scoped: bool,
    columns: Sequence[str],
    **more: Any,
) -> CustomResource:
    """Return the custom resource of models with their versions.

    Raises:
        ValueError: a name is invalid.
    """
    from tetrapod.crds import CustomResource, Version
    from tetrapod.scaffold import names

    kind = kind or models[0][1].__name__
    plural = plural or names.plural_of(kind)
    names.check_group(group)
    names.check_kind(kind)
    names.check_plural(plural)
    for version, _ in models:
        names.check_version(version)
    shown = [_column(each) for each in columns]
    versions = [Version(version, model, columns=shown) for version, model in models]
    return CustomResource(group, kind, versions, plural, namespaced=not cluster_scoped, **more)


def _load(argument: str) -> tuple[str, Any]:
    """Return the version and the object of an argument `[VERSION=]MODULE:NAME`."""
    import importlib
    import sys

    before, equals, after = argument.partition("=")
    version, path = (before, after) if equals else ("v1", argument)
    module, _, name = path.partition(":")
    if not name:
        raise click.UsageError(f"want MODULE:NAME, got {path}")
    sys.path.insert(0, "")
    try:
        return version, getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise click.ClickException(f"{path}: {error}") from None
    finally:
        sys.path.remove("")


def _column(text: str) -> Column:
    from tetrapod.crds import Column

    name, _, rest = text.partition("=")
    path, _, type_ = rest.partition(":")
    if not (name and path):
        raise click.UsageError(f"want NAME=PATH[:TYPE], got {text}")
    return Column(name, path, type_ or "string")
