#!/bin/sh
# Print the path of helm. If this machine has none, build it once from its Go module, which takes a few minutes.
set -eu
version=v3.19.2
if command -v helm; then exit 0; fi
exec "$(dirname "$0")/go_install.sh" "helm-$version" "helm.sh/helm/v3/cmd/helm@$version"
