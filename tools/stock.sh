#!/bin/sh
# Builds kube-controller-manager, kube-scheduler, sample-apiserver and kube-apiserver from the modules pinned in tools/stock/go.mod,
# once, and prints their directory.
#   tools/stock.sh          builds what is missing: several minutes of two cores, and 2 GB of modules the first time
#   tools/stock.sh --where  only prints the directory
# The directory is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod. STOCK_BIN names a directory that has them already.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -nE 's|^(require)?[[:space:]]*k8s\.io/kubernetes v([0-9.]+)$|\2|p' "$here/stock/go.mod")  # `go mod tidy` may move it
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
