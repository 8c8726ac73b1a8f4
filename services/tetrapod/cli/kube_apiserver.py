"""`tetrapod-kube-apiserver`: the whole server with kube-apiserver's command line.

It is for programs that start a kube-apiserver binary, in the first place for controller-runtime's envtest
(TEST_ASSET_KUBE_APISERVER, or a link with that name in KUBEBUILDER_ASSETS). If --etcd-servers names `tetrapod-etcd`
(etcd_stand_in.py), objects are stored in its data directory, otherwise in that etcd. Flags that the caller cannot pass
come from the environment variable TETRAPOD_FLAGS.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tetrapod.apps.options.options import Options
from tetrapod.cli.flags import program_command

if TYPE_CHECKING:
    from tetrapod.generic.storage.backend import Backend

ENVIRONMENT: Final = "TETRAPOD_FLAGS"
_ETCD_TIMEOUT: Final = 2.0  # seconds for an etcd to respond
_GRACE: Final = 1.0  # seconds for requests in flight at shutdown: a test suite does not wait for them
_DEFAULTS: Final = {
    "collection-delay": 0.0,
    "controllers": ("*", "-root-ca-certificate-publisher-controller", "-serviceaccount-controller"),
    "allow-privileged": False,
}
"""Defaults that differ from `tetrapod up`. With these controllers a namespace contains only objects that the test suite
creates, as with a kube-apiserver without controllers.
"""
_PROXY_CA: Final = "requestheader-client-ca-file"
_PROXY_HEADERS: Final = {
    f"requestheader-{name}": () for name in ("username-headers", "uid-headers", "group-headers", "extra-headers-prefix")
}
"""As in kube-apiserver no header is trusted without its flag. This applies to front proxies of the caller only, because
extension API servers need the headers of the server's own CA.
"""


@program_command("up", name="kube-apiserver")
def kube_apiserver(options: Options) -> None:
    """Run the whole server with kube-apiserver's flags.

    This is for programs that expect that binary: envtest, scripts, manifests. More flags are read from the environment
    variable TETRAPOD_FLAGS.
    """
    from tetrapod.apps.embedded import Embedded
    from tetrapod.apps.process import log_flags
    from tetrapod.apps.workers.program import run_program
    from tetrapod.generic.observability.logs import configure

    configure(options.logging.format, options.verbosity)
    log_flags(options.flags())
    options, clean_up = _with_directory(options)
    try:
        options, store = _with_store(options)
        sys.exit(run_program(options, lambda options: Embedded(options, store())))
    finally:
        clean_up()


def _with_directory(options: Options) -> tuple[Options, Callable[[], None]]:
    """Return options with a data directory and this command's defaults, and a function that removes the directory.

    Without --data-dir the data directory is `tetrapod` in --cert-dir. Without both it is a temporary directory, and
    only this one is removed. The directory is created if it is missing.
    """
    if "data-dir" in options.given:
        directory, clean_up = options.data_dir, _nothing
    elif options.serving.cert_dir:
        directory, clean_up = Path(options.serving.cert_dir) / "tetrapod", _nothing
    else:
        directory = Path(tempfile.mkdtemp(prefix="tetrapod-"))
        clean_up = lambda: shutil.rmtree(directory, ignore_errors=True)  # noqa: E731
    directory.mkdir(parents=True, exist_ok=True)
    defaults = {**_DEFAULTS, **(_PROXY_HEADERS if _PROXY_CA in options.given else {})}
    own = {name: value for name, value in defaults.items() if name not in options.given}
    return replace(options.with_flags({"data-dir": directory, **own}), shutdown_grace=_GRACE), clean_up


def _nothing() -> None:
    pass


def _with_store(options: Options) -> tuple[Options, Callable[[], Backend]]:
    """Return options and a function that opens the store.

    If --etcd-servers names a `tetrapod-etcd`, which is asked once, the store is the SQLite file of that program. The
    returned options are then without --etcd-servers, and leader election is off, because no other replica can share the
    store. Otherwise, and with an egress configuration, the options are returned unchanged, and the store is the one
    that they name.
    """
    from tetrapod.apps.wiring.egress import egress_selector
    from tetrapod.apps.wiring.storage import open_backend

    plain = len(options.etcd.servers) == 1 and options.etcd.servers[0].startswith("http://")
    if plain and not options.egress.config_file:
        from tetrapod.cli.etcd_stand_in import database_of
        from tetrapod.generic.storage.sqlite.backend import SqliteBackend

        database = database_of(options.etcd.servers[0], _ETCD_TIMEOUT)
        if database is not None:
            return options.with_flags({"etcd-servers": ()}), lambda: SqliteBackend(database, durable=False)
    return options, lambda: open_backend(options, egress_selector(options))


def main() -> None:
    """Run the console script `tetrapod-kube-apiserver`."""
    argv = [*sys.argv[1:], *shlex.split(os.environ.get(ENVIRONMENT, ""))]
    kube_apiserver.main(argv, prog_name="tetrapod-kube-apiserver")
