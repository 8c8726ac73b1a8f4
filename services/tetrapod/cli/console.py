"""`tetrapod console`: a web page that shows what a server does."""

from __future__ import annotations

import contextlib

import click

from tetrapod.cli.servers import kubeconfig_options, server_of

_INSTALL = "the console needs more packages: pip install 'tetrapod-apiserver[console]'"


@click.command()
@kubeconfig_options()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port on 127.0.0.1; a free one by default.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=60),
    default=5.0,
    show_default=True,
    help="The seconds between two reads of each panel, while a browser shows the page.",
)
@click.option(
    "--metrics",
    multiple=True,
    metavar="NAME=URL",
    help="A further process of the API server, whose /metrics is added up. May be repeated. For four services, name "
    "core, extensions and auth.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
def console(
    kubeconfig: str, context: str, port: int, interval: float, metrics: tuple[str, ...], open_browser: bool
) -> None:
    """Serve a web page about a running server.

    The server is that of the kubeconfig. The page is served on 127.0.0.1 only. It shows the path of a chosen request,
    request rates and latencies by priority level and flow schema, watches and watch caches, leases, APIServices and
    custom resource definitions. It reads with the credentials of the kubeconfig and writes nothing.
    """
    try:
        from tetrapod.console.server import listen, serve
    except ImportError as error:
        raise click.ClickException(f"{_INSTALL} ({error})") from None

    target = server_of(kubeconfig, context)
    sources = {"apiserver": ""}
    for pair in metrics:
        name, equals, url = pair.partition("=")
        if not (name and equals and url.startswith("https://")) or name in sources:  # it gets the credentials
            raise click.UsageError(f"--metrics: want NAME=https://HOST:PORT with a new name, got {pair}")
        sources[name] = url.rstrip("/")

    def ready(address: str) -> None:
        click.echo(f"Console of {target.url}, until Ctrl-C:\n{address}")
        if open_browser:
            click.launch(address)

    try:
        listener = listen(port)
    except OSError as error:
        raise click.ClickException(f"127.0.0.1:{port} is not free: {error.strerror}") from None
    with contextlib.closing(listener), contextlib.suppress(KeyboardInterrupt):
        serve(target, sources, listener, interval, ready)
