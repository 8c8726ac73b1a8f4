#!/bin/sh
# Test the wheel on arm64, in an emulator if this machine has another processor: start `tetrapod up`, create and read objects with kubectl,
# and run the given unit tests. It needs root, debootstrap and a running Docker (tools/prepare.sh image). An emulated server takes minutes
# to start, and tests that limit CPU time fail in an emulator.
#   tools/arm64.sh [TESTS…]
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
if [ $# = 0 ]; then set -- tests/unit/machinery/patch tests/unit/machinery/protobuf/test_answers.py tests/unit/machinery/protobuf/test_bodies.py; fi
image=tetrapod-base:trixie-arm64
directory=$(mktemp -d)
container=
finish() {
    if [ -n "$container" ]; then docker rm --force "$container" >/dev/null; fi
    rm -rf "$directory"
}
trap finish EXIT

install() { # PACKAGE…: install packages for the Python of the image with uv, because pip takes minutes in the emulator
    "$python" -m uv --quiet pip install --python-platform aarch64-unknown-linux-gnu --python-version 3.13 --only-binary :all: \
        --target "$directory/packages" "$@"
}
start() { # OPTION… -- ARGUMENT…: run Python in a container
    options=
    while [ "$1" != -- ]; do options="$options $1"; shift; done
    shift
    # shellcheck disable=SC2086
    # --platform is not given, because Docker 20.10 records the architecture of the machine for an imported image.
    docker run --network host --volume "$directory:/work" --workdir /work --env PYTHONPATH=packages:tests \
        $options "$image" python3 "$@"
}

./tools/emulator.sh
./tools/dockerd.sh
./tools/base_image.sh "$image" arm64
"$python" -m uv --quiet build --wheel --build-constraints requirements-build.lock --require-hashes --out-dir "$directory" .
install "$directory"/*.whl
start --rm -- -c 'import platform; print(platform.machine(), platform.python_version())'

echo "== tetrapod up"
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
container=$(start --detach -- -m tetrapod.cli.main up --data-dir data --bind-address 127.0.0.1 --secure-port "$port")
kubectl() { "$(./tools/kubectl.sh)" --kubeconfig "$directory/data/kubeconfig" "$@"; }
tries=0
until kubectl get --raw /readyz >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 600 ] || [ "$(docker inspect --format '{{.State.Running}}' "$container")" != true ]; then
        docker logs "$container" >&2
        exit 1
    fi
    sleep 0.5
done
kubectl create configmap emulated --from-literal=architecture=arm64
kubectl create deployment web --image=nginx
kubectl get configmap emulated --output 'jsonpath={.data.architecture}{"\n"}'
kubectl get deployments
kubectl version
docker rm --force "$container" >/dev/null
container=

echo "== tests"
git archive HEAD tests pyproject.toml | tar --extract --directory "$directory"
grep -E '^(hypothesis|pytest[a-z-]*)==' requirements-test.txt >"$directory/tests.txt"
install --requirements "$directory/tests.txt"
start --rm -- -m pytest -q --timeout=600 --override-ini pythonpath=tests --override-ini cache_dir=/tmp/cache "$@"
