"""`tetrapod trace`: sends a request and prints its trace through the server.

The trace comes from generic/observability/tracing/trace_endpoint.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

if TYPE_CHECKING:
    from tetrapod.generic.http.request import HeaderList

_TYPES: Final = {"PATCH": "application/merge-patch+json"}
_TIMEOUT: Final = 100.0


@click.command("trace")
@click.argument("method")
@click.argument("path")
@click.option(
    "--kubeconfig",
    default="",
    help="The kubeconfig; $KUBECONFIG or ~/.kube/config by default. The user must be in the group system:masters.",
)
@click.option(
    "--filename", "-f", type=click.File("rb"), help="The file with the request body; - is the standard input."
)
@click.option(
    "--content-type",
    default="",
    help="The media type of the body; by default application/yaml, or a merge patch for PATCH.",
)
@click.option("--header", "-H", "headers", multiple=True, help="An additional header, 'Name: value'. May be repeated.")
@click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True)
def trace(
    method: str,
    path: str,
    kubeconfig: str,
    filename: BinaryIO | None,
    content_type: str,
    headers: tuple[str, ...],
    output: str,
) -> None:
    """Send the request METHOD PATH and print its trace: each filter, admission plugin and storage call, with times.

    The request has its effects, unless PATH contains ?dryRun=All. A watch, exec or followed log is traced until it has
    begun.
    """
    import orjson

    from tetrapod.generic.observability.tracing.report import text

    method, body = method.upper(), filename.read() if filename is not None else b""
    sent = [
        (name.strip().lower().encode(), value.strip().encode())
        for name, _, value in (h.partition(":") for h in headers)
    ]
    if body:
        sent.append((b"content-type", (content_type or _TYPES.get(method, "application/yaml")).encode()))
    status, answer = _send(kubeconfig, method, f"{path}{'&' if '?' in path else '?'}trace=1", sent, body)
    report = _report(answer) if status == 200 else None
    if report is None:
        raise click.ClickException(
            f"the server answered {status}, without a trace: {answer.decode('utf-8', 'replace').strip()}"
        )
    click.echo(
        orjson.dumps(report, option=orjson.OPT_INDENT_2).decode() if output == "json" else text(report),
        nl=output == "json",
    )


def _report(body: bytes) -> dict[str, Any] | None:
    import orjson

    try:
        report = orjson.loads(body)
    except ValueError:
        return None
    return report if isinstance(report, dict) and "spans" in report and "traceID" in report else None


def _send(kubeconfig: str, method: str, target: str, headers: HeaderList, body: bytes) -> tuple[int, bytes]:
    import asyncio

    from tetrapod.generic.proxy import BackendError, BackendPool
    from tetrapod.generic.webhook.kubeconfig import read_kubeconfig

    file = (
        kubeconfig or os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or str(Path("~/.kube/config").expanduser())
    )
    try:
        server = read_kubeconfig(file)
    except ValueError as error:
        raise click.ClickException(str(error)) from None

    async def send() -> tuple[int, bytes]:
        pool = BackendPool()
        try:
            url = server.url.rstrip("/") + target
            status, _, answer = await pool.fetch(
                method, url, body, [*headers, *server.auth_headers()], _TIMEOUT, tls=server.endpoint.tls
            )
            return status, answer
        finally:
            await pool.close()

    try:
        return asyncio.run(send())
    except (BackendError, TimeoutError, OSError) as error:
        raise click.ClickException(f"{server.url} cannot be asked: {error or type(error).__name__}") from None
