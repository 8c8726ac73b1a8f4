#!/bin/sh
# Build etcd, or its client with `tools/etcd.sh etcdctl`, once from the module pinned in tools/etcd/go.mod, and print the path of the binary.
# The directory is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod. The script needs Go, and the first run takes a few minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|^[[:space:]]*go.etcd.io/etcd/server/v3 v||p' "$here/etcd/go.mod")
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/etcd-$version"
program=${1:-etcd}
case $program in
    etcd) package=go.etcd.io/etcd/server/v3 ;;
    etcdctl) package=go.etcd.io/etcd/etcdctl/v3 ;;
    *) echo "etcd.sh: no program $program" >&2; exit 2 ;;
esac
if [ ! -x "$directory/$program" ]; then
    mkdir -p "$directory"
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    (cd "$here/etcd" && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -o "$directory/$program.$$" "$package") >&2
    mv "$directory/$program.$$" "$directory/$program"
fi
echo "$directory/$program"
