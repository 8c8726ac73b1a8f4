#!/bin/sh
# Prints the path of a helm: the machine's own, else one built from its Go module, once, which takes a few minutes.
set -eu
version=v3.19.2
if command -v helm; then exit 0; fi
exec "$(dirname "$0")/go_install.sh" "helm-$version" "helm.sh/helm/v3/cmd/helm@$version"
