#!/bin/sh
# Build a base image from Debian's packages, for machines that reach no image registry. It replaces python:3-slim as BASE of
# deploy/Dockerfile, and has the same release of Debian. $1 is its name (default tetrapod-base:trixie), and $2 its architecture as Debian
# names it, such as arm64 (default that of this machine). The image has the CA bundle and the pip and apt settings of this machine, so
# that builds in it reach the same mirrors. The script needs root, debootstrap and a running Docker. It does nothing if the image exists.
set -eu
image=${1:-tetrapod-base:trixie}
architecture=${2:-$(dpkg --print-architecture)}
suite=trixie  # with Python 3.13
if docker image inspect "$image" >/dev/null 2>&1; then exit 0; fi

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v -e security -e updates | head -n 1 || true)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
bootstrap() { # OPTION…: run debootstrap with the packages of the image
    debootstrap "$@" --arch="$architecture" --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$root" \
        "${mirror:-http://deb.debian.org/debian}" >&2
}
if [ "$architecture" = "$(dpkg --print-architecture)" ]; then
    bootstrap
else
    # Packages of another architecture are unpacked but not configured, because their scripts would take hours in an emulator. Python works
    # without them.
    bootstrap --foreign
    for package in "$root"/var/cache/apt/archives/*.deb; do
        dpkg-deb --extract "$package" "$root"
        dpkg-deb --field "$package" | sed '/^Package:/a Status: install ok unpacked'
        echo
    done > "$root/var/lib/dpkg/status"
    cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
    cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
    rm -rf "$root/debootstrap"
fi

mkdir -p "$root/etc/ssl/certs" "$root/etc/apt/apt.conf.d"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' > "$root/etc/pip.conf"
if [ -f /etc/pip.conf ]; then cp /etc/pip.conf "$root/etc/pip.conf"; fi
if ls /etc/apt/apt.conf.d/*proxy* >/dev/null 2>&1; then cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/"; fi
# Remove documentation, translations and caches, as slim images do.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
for part in man doc locale info lintian doc-base; do rm -rf "$root/usr/share/$part"; done
find "$root" -name __pycache__ -prune -exec rm -rf {} +
tar --create --directory "$root" --one-file-system --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' . \
    | docker import --platform "linux/$architecture" --change 'CMD ["python3"]' - "$image" >&2
