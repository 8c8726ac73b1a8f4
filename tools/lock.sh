#!/bin/sh
# Write requirements.lock and requirements-build.lock: the direct and indirect dependencies of pyproject.toml, with the hash of every file.
# The script needs uv (requirements-dev.txt). Locked versions are kept, unless pyproject.toml excludes them or --upgrade is given.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
lock() { # ARGUMENT…: lock the requirements of a file, or of standard input if it is `-`
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@" >/dev/null
}
lock pyproject.toml --output-file requirements.lock "${@}"
python3 -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
    | lock - --output-file requirements-build.lock "${@}"
