#!/bin/sh
# Run a command with a BuildKit daemon, whose address is in $BUILDKIT_HOST, and with buildctl in $PATH. The first run builds both from
# their Go module, at the version in tools/buildkit/go.mod. The script needs root and runc.
#   tools/buildkit.sh COMMAND…
# The directory is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|^require github.com/moby/buildkit v||p' "$here/buildkit/go.mod")
cache="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/buildkit-$version"
mkdir -p "$cache"
for name in buildkitd buildctl; do
    if [ -x "$cache/$name" ]; then continue; fi
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    (cd "$here/buildkit" && CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false \
        -ldflags "-s -w -X github.com/moby/buildkit/version.Version=v$version" -o "$cache/$name.$$" "github.com/moby/buildkit/cmd/$name") >&2
    mv "$cache/$name.$$" "$cache/$name"
done
directory=$(mktemp -d)
export BUILDKIT_HOST="unix://$directory/socket" PATH="$cache:$PATH"
buildkitd --root "$directory/root" --addr "$BUILDKIT_HOST" --oci-worker-net=host >"$directory/log" 2>&1 &
daemon=$!
finish() {
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" || true
    rm -rf "$directory"
}
trap finish EXIT
tries=0
until buildctl debug workers >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ "$tries" -gt 120 ] || ! kill -0 "$daemon" 2>/dev/null; then
        tail -n 20 "$directory/log" >&2
        exit 1
    fi
    sleep 0.5
done
"$@"
