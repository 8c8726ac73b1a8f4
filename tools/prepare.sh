#!/bin/sh
# Install the programs that the tests need on Debian, except those that are installed already. It installs no Python packages.
#   tools/prepare.sh             kubectl, etcd, redis-server, wrk, h2load, helm, openssl, curl, Node, strace,
#                                h2spec
#   tools/prepare.sh browser     the above, and Chromium if Chrome is not installed
#   tools/prepare.sh containers  the first, a running Docker with compose, and a base image for Tetrapod's image
#   tools/prepare.sh image       the programs of `make e2e-image`: a running Docker, runc, skopeo, debootstrap, helm,
#                                BuildKit, a registry, a scanner of packages
#   tools/prepare.sh cluster     the programs of `make cluster`: runc, iptables, debootstrap, a C compiler, kubectl, etcd
#   tools/prepare.sh faults      the first, and libfaketime, for clocks that jump
# It prints a line for each program that it cannot install. Tests that need such a program are skipped, with the reason.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

missing() { # COMMAND:PACKAGE…: print the packages whose commands are missing
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || printf '%s ' "${pair#*:}"
    done
}

install() {
    packages=$(missing "$@")
    if [ -z "$packages" ]; then return 0; fi
    if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
        echo "prepare: not installed, because that needs apt-get and root: $packages" >&2
        return 0
    fi
    echo "prepare: installing $packages"
    apt-get update -qq >/dev/null
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
}

tool() { # NAME COMMAND…: build a tool, or print that it is missing
    name=$1
    shift
    if ! "$@" >/dev/null; then echo "prepare: no $name; the tests that need it are skipped" >&2; fi
}

if [ "${1:-}" = cluster ]; then
    install runc:runc iptables:iptables ip:iproute2 modprobe:kmod debootstrap:debootstrap cc:gcc
    if [ ! -e /usr/include/stdlib.h ]; then install /usr/include/stdlib.h:libc6-dev; fi
    tool kubectl "$here/kubectl.sh"
    tool etcd "$here/etcd.sh"
    exit 0
fi

if [ "${1:-}" = image ]; then
    install dockerd:docker.io docker:docker.io runc:runc skopeo:skopeo debootstrap:debootstrap
    tool helm "$here/helm.sh"
    tool BuildKit "$here/buildkit.sh" true
    "$here/dockerd.sh"
    tool "registry or SBOM scanner" "$here/registry.sh" "$here/sbom_scanner.sh"
    exit 0
fi

install redis-server:redis-server wrk:wrk h2load:nghttp2-client openssl:openssl curl:curl node:nodejs strace:strace
tool kubectl "$here/kubectl.sh"
tool etcd "$here/etcd.sh"
tool helm "$here/helm.sh"
tool h2spec "$here/h2spec.sh"

if [ "${1:-}" = browser ] && ! command -v google-chrome >/dev/null 2>&1; then
    install chromium:chromium
fi

if [ "${1:-}" = faults ]; then
    install faketime:faketime ip:iproute2
fi

if [ "${1:-}" = containers ]; then
    install dockerd:docker.io docker:docker.io debootstrap:debootstrap iptables:iptables
    tool "docker compose" "$here/compose.sh"
    tool etcdctl "$here/etcd.sh" etcdctl
    tool Prometheus "$here/prometheus.sh"
    "$here/dockerd.sh"
    "$here/base_image.sh"
fi
