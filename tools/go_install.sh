#!/bin/sh
# Builds a program from its Go module, once, and prints the path of the binary.
#   tools/go_install.sh DIRECTORY PACKAGE@VERSION [go install arguments...]
# Where: DIRECTORY below $TETRAPOD_CACHE, else below ~/.cache/tetrapod. Needs Go.
set -eu
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/$1"
source=$2
shift 2
name=${source%@*}
case ${name##*/} in v[0-9]*) name=${name%/*} ;; esac  # go leaves out the suffix of a major version, too
name=${name##*/}
if [ ! -x "$directory/$name" ]; then
    mkdir -p "$directory"
    # Built elsewhere first: whoever runs this at the same time never sees half a binary.
    GOBIN="$directory/$$" go install -trimpath -ldflags '-s -w' "$@" "$source" >&2
    mv "$directory/$$/$name" "$directory/$name"
    rmdir "$directory/$$"
fi
echo "$directory/$name"
