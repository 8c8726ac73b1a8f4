#!/bin/sh
# Print the path of kubectl. If this machine has none, build it once from the Go module pinned in tools/kubectl/go.mod.
# The directory is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod. Building needs Go and takes a few minutes.
set -eu
if command -v kubectl; then exit 0; fi
here=$(cd "$(dirname "$0")" && pwd)
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/bin"
if [ ! -x "$directory/kubectl" ]; then
    mkdir -p "$directory"
    (cd "$here/kubectl" && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$directory/kubectl.$$" .) >&2
    mv "$directory/kubectl.$$" "$directory/kubectl"
fi
echo "$directory/kubectl"
