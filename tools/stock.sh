#!/bin/sh
# Build kube-controller-manager, kube-scheduler, sample-apiserver and kube-apiserver once from the modules pinned in tools/stock/go.mod, and
# print their directory.
#   tools/stock.sh          builds the missing programs; the first run takes several minutes on two cores, and 2 GB for modules
#   tools/stock.sh --where  only prints the directory
# The directory is $STOCK_BIN, which may have the programs already, else it is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# `go mod tidy` may move the requirement into a block.
version=$(sed -nE 's|^(require)?[[:space:]]*k8s\.io/kubernetes v([0-9.]+)$|\2|p' "$here/stock/go.mod")
directory="${STOCK_BIN:-${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/stock-$version}"
if [ "${1:-}" != --where ]; then
    mkdir -p "$directory"
    for package in k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-scheduler k8s.io/sample-apiserver \
        k8s.io/kubernetes/cmd/kube-apiserver; do
        name=${package##*/}
        [ -x "$directory/$name" ] && continue
        # Build under another name first, so that another run at the same time sees no incomplete binary.
        (cd "$here/stock" && GOFLAGS=-mod=readonly go build -p 2 -trimpath -buildvcs=false \
            -ldflags "$("$here/version_ldflags.sh" "$version")" -o "$directory/$name.$$" "$package") >&2
        mv "$directory/$name.$$" "$directory/$name"
    done
fi
echo "$directory"
