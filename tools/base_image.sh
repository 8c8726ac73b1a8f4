#!/bin/sh
# Makes the image $1 (default tetrapod-base:trixie) of the architecture $2 (default that of this machine, as Debian names it, such as arm64)
# from Debian's packages, for machines that reach no image registry: a stand-in for
# python:3-slim to give as BASE to deploy/Dockerfile, with the same release of Debian. It trusts what this machine trusts (CA bundle), and
# uses its pip and apt settings, so that builds in it reach what the machine reaches. Needs root, debootstrap and a running Docker; for
# another architecture an emulator too (tools/emulator.sh). Does nothing where the image is there.
set -eu
image=${1:-tetrapod-base:trixie}
architecture=${2:-$(dpkg --print-architecture)}
suite=trixie  # with Python 3.13
if docker image inspect "$image" >/dev/null 2>&1; then exit 0; fi

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v -e security -e updates | head -n 1 || true)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --arch="$architecture" --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$root" "${mirror:-http://deb.debian.org/debian}" >&2

cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' > "$root/etc/pip.conf"
if [ -f /etc/pip.conf ]; then cp /etc/pip.conf "$root/etc/pip.conf"; fi
if ls /etc/apt/apt.conf.d/*proxy* >/dev/null 2>&1; then cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/"; fi
# As slim images are: no documentation, no translations, no caches.
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
for part in man doc locale info lintian doc-base; do rm -rf "$root/usr/share/$part"; done
find "$root" -name __pycache__ -prune -exec rm -rf {} +
tar --create --directory "$root" --one-file-system --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' . \
    | docker import --platform "linux/$architecture" --change 'CMD ["python3"]' - "$image" >&2
