#!/bin/sh
# Builds Prometheus and promtool from their Go module, once, and prints the directory. It finds targets by DNS only and has no web pages:
# that leaves out most of what there is to build.
# Where: $TETRAPOD_CACHE, else ~/.cache/tetrapod. Needs Go; the first run takes a few minutes.
set -eu
version=v0.316.0  # of the module: Prometheus 3.16.0
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/prometheus-$version"
if [ ! -x "$directory/promtool" ] || [ ! -x "$directory/prometheus" ]; then
    mkdir -p "$directory"
    # Built elsewhere first: whoever runs this at the same time never sees half a binary.
    for program in prometheus promtool; do
        GOBIN="$directory/$$" go install -trimpath -ldflags '-s -w' -tags netgo,remove_all_sd,enable_dns_sd \
            "github.com/prometheus/prometheus/cmd/$program@$version" >&2
        mv "$directory/$$/$program" "$directory/$program"
    done
    rmdir "$directory/$$"
fi
echo "$directory"
