#!/bin/sh
# Builds etcd from the Go module pinned in tools/etcd/go.mod, once, and prints the path of the binary.
# Where: $TETRAPOD_CACHE, else ~/.cache/tetrapod. Needs Go; the first run takes a few minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|^require go.etcd.io/etcd/server/v3 v||p' "$here/etcd/go.mod")
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/etcd-$version"
if [ ! -x "$directory/etcd" ]; then
    mkdir -p "$directory"
    # Built under another name first: whoever runs this at the same time never sees half a binary.
    (cd "$here/etcd" && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$directory/etcd.$$" go.etcd.io/etcd/server/v3) >&2
    mv "$directory/etcd.$$" "$directory/etcd"
fi
echo "$directory/etcd"
