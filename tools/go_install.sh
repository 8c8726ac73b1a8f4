#!/bin/sh
# Build a program once from its Go module, and print the path of the binary.
#   tools/go_install.sh DIRECTORY PACKAGE@VERSION [go install arguments...]
# DIRECTORY is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod. The script needs Go.
set -eu
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/$1"
source=$2
shift 2
name=${source%@*}
case ${name##*/} in v[0-9]*) name=${name%/*} ;; esac  # `go install` omits the suffix of a major version, too
name=${name##*/}
if [ ! -x "$directory/$name" ]; then
    mkdir -p "$directory"
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    GOBIN="$directory/$$" go install -trimpath -ldflags '-s -w' "$@" "$source" >&2
    mv "$directory/$$/$name" "$directory/$name"
    rmdir "$directory/$$"
fi
echo "$directory/$name"
