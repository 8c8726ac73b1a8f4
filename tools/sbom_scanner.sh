#!/bin/sh
# Push a scanner to the registry $REGISTRY (tools/registry.sh), and print its reference for --opt attest:sbom=generator=REFERENCE. With it,
# BuildKit lists the packages of an image (SBOM). It replaces BuildKit's default, docker/buildkit-syft-scanner, if no image can be pulled.
# It is built once from syft's module, at the version in tools/sbom_scanner/go.mod. The script needs Go, a running Docker and skopeo.
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
