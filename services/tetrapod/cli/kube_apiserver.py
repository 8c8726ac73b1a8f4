"""`tetrapod-kube-apiserver`: the whole server behind kube-apiserver's command line, for what starts a kube-apiserver binary.

Made for controller-runtime's envtest (TEST_ASSET_KUBE_APISERVER, or a link of that name in KUBEBUILDER_ASSETS). Where
--etcd-servers names `tetrapod-etcd` (etcd_stand_in.py) objects are kept in its data directory, else in the etcd that it names.
Flags that the caller's code cannot give come from the environment variable TETRAPOD_FLAGS.
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
from tetrapod.cli.flags import with_flags

if TYPE_CHECKING:
    from tetrapod.generic.storage.backend import Backend

ENVIRONMENT: Final = "TETRAPOD_FLAGS"
_PATIENCE: Final = 2.0  # seconds for an etcd to say whether it is one
_GRACE: Final = 1.0  # seconds for requests at the end: nobody waits for tests
_DEFAULTS: Final = {
    "collection-delay": 0.0,
    "controllers": ("*", "-root-ca-certificate-publisher-controller", "-serviceaccount-controller"),
    "allow-privileged": False,
}
"""Defaults that differ from `tetrapod up`. With these controllers a namespace contains only objects that the test suite creates, as with
a kube-apiserver without controllers.
"""


@with_flags("up", name="kube-apiserver")
def kube_apiserver(options: Options) -> None:
    """Run the whole server with kube-apiserver's flags, for what expects that binary: envtest, scripts, manifests.

    More flags are read from the environment variable TETRAPOD_FLAGS.
    """
    from tetrapod.apps.embedded import Embedded
    from tetrapod.apps.process import run
    from tetrapod.apps.wiring.process import tell_flags
    from tetrapod.generic.observability.logs import configure

    configure(options.logging.format, options.verbosity)
    tell_flags(options.flags())
    options, forget = _with_directory(options)
    try:
        options, store = _with_store(options)
        sys.exit(run(lambda: Embedded(options, store())))
    finally:
        forget()


def _with_directory(options: Options) -> tuple[Options, Callable[[], None]]:
    """Return the default data directory: below --cert-dir, which its owner removes, or a temporary one."""
    if "data-dir" in options.given:
        directory, forget = options.data_dir, _nothing
    elif options.serving.cert_dir:
        directory, forget = Path(options.serving.cert_dir) / "tetrapod", _nothing
    else:
        directory = Path(tempfile.mkdtemp(prefix="tetrapod-"))
        forget = lambda: shutil.rmtree(directory, ignore_errors=True)  # noqa: E731
    directory.mkdir(parents=True, exist_ok=True)
    own = {name: value for name, value in _DEFAULTS.items() if name not in options.given}
    return replace(options.with_flags({"data-dir": directory, **own}), shutdown_grace=_GRACE), forget


def _nothing() -> None:
    pass


def _with_store(options: Options) -> tuple[Options, Callable[[], Backend]]:
    """SQLite where `tetrapod-etcd` wants it, if that is what --etcd-servers names: then nobody shares it, and nobody is elected."""
    from tetrapod.apps.wiring.storage import open_backend

    if len(options.etcd.servers) == 1 and options.etcd.servers[0].startswith("http://"):
        from tetrapod.cli.etcd_stand_in import database_of
        from tetrapod.generic.storage.sqlite.backend import SqliteBackend

        database = database_of(options.etcd.servers[0], _PATIENCE)
        if database is not None:
            return options.with_flags({"etcd-servers": ()}), lambda: SqliteBackend(database, durable=False)
    return options, lambda: open_backend(options)


def main() -> None:
    """Run the console script."""
    argv = [*sys.argv[1:], *shlex.split(os.environ.get(ENVIRONMENT, ""))]
    kube_apiserver.main(argv, prog_name="tetrapod-kube-apiserver")
