#!/bin/sh
# Build Prometheus and promtool once from their Go module, and print the directory. The first run takes a few minutes. The build omits all
# service discovery but DNS, and the web pages, because these are most of the code.
set -eu
version=v0.316.0  # the version of the module, which is that of Prometheus 3.16.0
for program in prometheus promtool; do
    path=$("$(dirname "$0")/go_install.sh" "prometheus-$version" "github.com/prometheus/prometheus/cmd/$program@$version" \
        -tags netgo,remove_all_sd,enable_dns_sd)
done
dirname "$path"
