#!/bin/sh
# Builds Prometheus and promtool from their Go module, once, and prints the directory. The first run takes a few minutes. It finds targets
# by DNS only and has no web pages: that leaves out most of what there is to build.
set -eu
version=v0.316.0  # of the module: Prometheus 3.16.0
for program in prometheus promtool; do
    path=$("$(dirname "$0")/go_install.sh" "prometheus-$version" "github.com/prometheus/prometheus/cmd/$program@$version" \
        -tags netgo,remove_all_sd,enable_dns_sd)
done
dirname "$path"
