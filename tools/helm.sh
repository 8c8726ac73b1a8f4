#!/bin/sh
# Prints the path of a helm: the machine's own, else one built from its Go module, once.
# Where: $TETRAPOD_CACHE, else ~/.cache/tetrapod. Building needs Go and takes a few minutes.
set -eu
version=v3.19.2
if command -v helm; then exit 0; fi
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/helm-$version"
if [ ! -x "$directory/helm" ]; then
    mkdir -p "$directory"
    # Built elsewhere first: whoever runs this at the same time never sees half a binary.
    GOBIN="$directory/$$" go install -trimpath -ldflags '-s -w' "helm.sh/helm/v3/cmd/helm@$version" >&2
    mv "$directory/$$/helm" "$directory/helm"
    rmdir "$directory/$$"
fi
echo "$directory/helm"
