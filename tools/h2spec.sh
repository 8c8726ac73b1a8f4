#!/bin/sh
# Build h2spec, which tests HTTP/2 servers, once from the module pinned in tools/h2spec/go.mod, and print its directory.
#   tools/h2spec.sh          builds it if it is missing, which takes half a minute
#   tools/h2spec.sh --where  only prints the directory
# The directory is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|.*github.com/summerwind/h2spec v\([0-9.]*\).*|\1|p' "$here/h2spec/go.mod" | tail -1)
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/h2spec-$version"
if [ "${1:-}" != --where ] && [ ! -x "$directory/h2spec" ]; then
    mkdir -p "$directory"
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    (cd "$here/h2spec" && GOFLAGS=-mod=readonly go build -p 2 -trimpath -buildvcs=false -ldflags '-s -w' \
        -o "$directory/h2spec.$$" github.com/summerwind/h2spec/cmd/h2spec) >&2
    mv "$directory/h2spec.$$" "$directory/h2spec"
fi
echo "$directory"
