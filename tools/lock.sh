#!/bin/sh
# Writes requirements.lock and requirements-build.lock: what pyproject.toml names and all that those need, every file of it by its hash.
# Wants uv (requirements-dev.txt). Versions that are locked stay as they are unless pyproject.toml says otherwise, or --upgrade.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
lock() { # FILE: from standard input's or pyproject's requirements
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@" >/dev/null
}
lock pyproject.toml --output-file requirements.lock "${@}"
python3 -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
    | lock - --output-file requirements-build.lock "${@}"
