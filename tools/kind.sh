#!/bin/sh
# Prints the path of kind: the machine's own, else one built from its Go module, once.
# Where: $TETRAPOD_CACHE, else ~/.cache/tetrapod. Building needs Go.
set -eu
version=v0.33.0
if command -v kind; then exit 0; fi
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/kind-$version"
if [ ! -x "$directory/kind" ]; then
    mkdir -p "$directory"
    # Built elsewhere first: whoever runs this at the same time never sees half a binary.
    GOBIN="$directory/$$" go install -trimpath -ldflags '-s -w' "sigs.k8s.io/kind@$version" >&2
    mv "$directory/$$/kind" "$directory/kind"
    rmdir "$directory/$$"
fi
echo "$directory/kind"
