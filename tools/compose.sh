#!/bin/sh
# Print the directory of a Docker configuration (DOCKER_CONFIG) in which `docker compose` and BuildKit work. If that of this machine lacks
# the plug-ins, build them once from their Go modules, at the versions in tools/compose/go.mod, into a configuration of their own.
# It is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod. Building needs Go and takes a few minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if docker compose version >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1; then
    echo "${DOCKER_CONFIG:-$HOME/.docker}"
    exit 0
fi
version=$(sed -n 's|^[[:space:]]*github.com/docker/compose/v5 v||p' "$here/compose/go.mod")
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/compose-$version"
plugins=$directory/cli-plugins
build() { # NAME PACKAGE VERSION-VARIABLE=VERSION
    if [ -x "$plugins/$1" ]; then return 0; fi
    mkdir -p "$plugins"
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    (cd "$here/compose" && GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -ldflags "-s -w -X $3" -o "$plugins/.$1.$$" "$2") >&2
    mv "$plugins/.$1.$$" "$plugins/$1"
}
build docker-buildx github.com/docker/buildx/cmd/buildx \
    "github.com/docker/buildx/version.Version=v$(sed -n 's|^[[:space:]]*github.com/docker/buildx v||p' "$here/compose/go.mod")"
build docker-compose github.com/docker/compose/v5/cmd "github.com/docker/compose/v5/internal.Version=v$version"
echo "$directory"
