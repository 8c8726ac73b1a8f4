#!/bin/sh
# Pushes a scanner to the registry $REGISTRY (tools/registry.sh), by which BuildKit lists the packages of an image (SBOM), and prints its
# reference for --opt attest:sbom=generator=REFERENCE. It stands in for docker/buildkit-syft-scanner, BuildKit's default, where no image can
# be pulled. It is built from syft's module once, at the version of tools/sbom_scanner/go.mod. Needs Go, a running Docker and skopeo.
# The directory is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|.*github.com/anchore/syft v||p' "$here/sbom_scanner/go.mod")
cache="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/sbom-scanner-$version"
if [ ! -x "$cache/scanner" ]; then
    mkdir -p "$cache"
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    (cd "$here/sbom_scanner" && CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -p 2 -trimpath -buildvcs=false -ldflags '-s -w' \
        -o "$cache/scanner.$$" .) >&2
    mv "$cache/scanner.$$" "$cache/scanner"
fi
image=tetrapod-sbom-scanner:$version
tar --create --directory "$cache" scanner | docker import --change 'ENTRYPOINT ["/scanner"]' - "$image" >/dev/null
skopeo copy --quiet --dest-tls-verify=false "docker-daemon:$image" "docker://$REGISTRY/$image" >&2
docker image rm "$image" >/dev/null
echo "$REGISTRY/$image"
