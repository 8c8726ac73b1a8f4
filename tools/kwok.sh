#!/bin/sh
# Builds kwok, which plays the kubelets of a cluster, from its Go module, once, and prints its directory.
# `stages.yaml` is beside it: what kwok does with nodes and pods. Both are of one version. Needs Go, and some minutes the first time.
set -eu
version=v0.8.0
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/kwok-$version"
"$(dirname "$0")/go_install.sh" "kwok-$version" "sigs.k8s.io/kwok/cmd/kwok@$version" >/dev/null
if [ ! -e "$directory/stages.yaml" ]; then
    module=$(cd / && go mod download -json "sigs.k8s.io/kwok@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p')
    for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
        pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
        echo "---"
        cat "$module/kustomize/stage/$stage.yaml"
    done >"$directory/stages.yaml.$$"
    mv "$directory/stages.yaml.$$" "$directory/stages.yaml"
fi
echo "$directory"
