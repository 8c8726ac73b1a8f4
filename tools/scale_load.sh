#!/bin/sh
# Builds the load generator of tests/scale/load, once for each state of its sources, and prints the path of the binary.
# Where: $TETRAPOD_CACHE, else ~/.cache/tetrapod. Needs Go.
set -eu
source=$(cd "$(dirname "$0")/../tests/scale/load" && pwd)
hash=$(cd "$source" && cat go.mod go.sum ./*.go | sha256sum | cut -c1-16)
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/scale-load"
program="$directory/load-$hash"
if [ ! -x "$program" ]; then
    mkdir -p "$directory"
    # Built under another name first: whoever runs this at the same time never sees half a binary.
    (cd "$source" && GOFLAGS=-mod=readonly go build -p 2 -trimpath -buildvcs=false -ldflags '-s -w' -o "$program.$$" .) >&2
    mv "$program.$$" "$program"
fi
echo "$program"
