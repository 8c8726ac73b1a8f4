#!/bin/sh
# Run the unit tests with the lowest and with the highest versions that pyproject.toml permits. The script needs uv (requirements-dev.txt).
# PYTHON names another interpreter, for example python3.14.
set -eu
cd "$(dirname "$0")/.."
uv=${UV:-.venv/bin/uv}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
for resolution in lowest-direct highest; do
    python=$directory/$resolution/bin/python
    "$uv" venv --quiet ${PYTHON:+--python "$PYTHON"} "$directory/$resolution"
    # The dependencies are installed before those of the tests, whose exact versions are not the lowest that Tetrapod permits.
    "$uv" pip install --quiet --python "$python" --resolution "$resolution" --editable .
    "$uv" pip freeze --quiet --python "$python" --exclude-editable >"$directory/$resolution.txt"
    "$uv" pip install --quiet --python "$python" --constraints "$directory/$resolution.txt" -r requirements-test.txt
    echo "== $resolution"
    "$python" -m pytest -q -n "${WORKERS:-2}" --dist loadfile --basetemp="$directory/tests" "$@" tests/unit
done
