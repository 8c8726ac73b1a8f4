"""`tetrapod trace`: do a request, and show its way through the server instead of its answer (generic/observability/tracing/asked.py)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

if TYPE_CHECKING:
    from tetrapod.generic.request import HeaderList

_TYPES: Final = {"PATCH": "application/merge-patch+json"}
_SECONDS: Final = 100.0


@click.command("trace")
@click.argument("method")
@click.argument("path")
@click.option(
    "--kubeconfig", default="", help="Who asks whom; $KUBECONFIG or ~/.kube/config by default. The user must be in system:masters."
)
@click.option("--filename", "-f", type=click.File("rb"), help="The request's body; - is the standard input.")
@click.option(
    "--content-type", default="", help="What the body is: application/yaml by default (which JSON is too), of a PATCH a merge patch."
)
@click.option("--header", "-H", "headers", multiple=True, help="A further header, 'Name: value'; may be repeated.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def trace(
    method: str, path: str, kubeconfig: str, filename: BinaryIO | None, content_type: str, headers: tuple[str, ...], output: str
) -> None:
    """Do the request METHOD PATH, and show what happened to it: every filter, admission plugin and storage call, with times.

    The request is done, not simulated (?dryRun=All in PATH is up to you). A watch, exec or followed log is traced until it has begun.
    """
    import orjson

    from tetrapod.generic.observability.tracing.report import text

    method, body = method.upper(), filename.read() if filename is not None else b""
    sent = [(name.strip().lower().encode(), value.strip().encode()) for name, _, value in (h.partition(":") for h in headers)]
    if body:
        sent.append((b"content-type", (content_type or _TYPES.get(method, "application/yaml")).encode()))
    status, answer = _ask(kubeconfig, method, f"{path}{'&' if '?' in path else '?'}trace=1", sent, body)
    report = _report(answer) if status == 200 else None
    if report is None:
        raise click.ClickException(f"the server answered {status}, without a trace: {answer.decode('utf-8', 'replace').strip()}")
    click.echo(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() if output == "json" else text(report), nl=output == "json")


def _report(answer: bytes) -> dict[str, Any] | None:
    import orjson

    try:
        found = orjson.loads(answer)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "spans" in found and "traceID" in found else None


def _ask(kubeconfig: str, method: str, target: str, headers: HeaderList, body: bytes) -> tuple[int, bytes]:
    import asyncio

    from tetrapod.generic.proxy import BackendError, BackendPool
    from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

    file = kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or str(Path("~/.kube/config").expanduser())
    try:
        server = read_kubeconfig(file)
    except ValueError as error:
        raise click.ClickException(str(error)) from None

    async def ask() -> tuple[int, bytes]:
        pool = BackendPool()
        try:
            url = server.url.rstrip("/") + target
            status, _, answer = await pool.fetch(method, url, body, [*headers, *server.credentials()], _SECONDS, tls=server.endpoint.tls)
            return status, answer
        finally:
            await pool.close()

    try:
        return asyncio.run(ask())
    except (BackendError, TimeoutError, OSError) as error:
        raise click.ClickException(f"{server.url} cannot be asked: {error or type(error).__name__}") from None
