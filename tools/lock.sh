#!/bin/sh
# Writes requirements.lock and requirements-build.lock: the dependencies of pyproject.toml and theirs, with the hash of every file.
# It needs uv (requirements-dev.txt). Locked versions are kept, unless pyproject.toml excludes them or --upgrade is given.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
lock() { # FILE: from standard input's or pyproject's requirements
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@" >/dev/null
}
lock pyproject.toml --output-file requirements.lock "${@}"
python3 -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
    | lock - --output-file requirements-build.lock "${@}"
