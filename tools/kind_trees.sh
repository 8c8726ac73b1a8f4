#!/bin/sh
# Make two tar archives in the directory $1, for a node image of kind on machines that reach no image registry:
#   packages.tar  a Debian system with the packages of kind's own base image (images/base/Dockerfile of its module)
#   network.tar   iptables, ipset, nft and ip with their libraries, for the images of kube-proxy and kube-router
# The script needs root and debootstrap. It does nothing if this version of it has made both archives already.
set -eu
directory=$1
if cmp -s "$0" "$directory/kind_trees.sh"; then exit 0; fi
# systemd of later Debian releases does not start on a kernel with control groups of version 1.
suite=bookworm
packages=bash,ca-certificates,conntrack,curl,e2fsprogs,ethtool,ipset,iproute2,iptables,jq,kmod,libseccomp2,mount,nftables,openssl,pigz,procps,runc,socat,systemd,util-linux

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v -e security -e updates | head -n 1 || true)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/packages network=$work/network
debootstrap --variant=minbase --include="$packages" "$suite" "$root" "${mirror:-http://deb.debian.org/debian}" >&2
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
for part in man doc locale info lintian doc-base; do rm -rf "$root/usr/share/$part"; done

copy() { # PATH…: copy files of the system to the same paths
    for path in "$@"; do
        mkdir -p "$network${path%/*}"
        cp -r "$root$path" "$network$path"
    done
}
xtables=$(chroot "$root" sh -c 'echo /usr/lib/*/xtables')
programs="/usr/sbin/xtables-nft-multi /usr/sbin/xtables-legacy-multi /usr/sbin/ipset /usr/sbin/nft /usr/sbin/conntrack /bin/ip /bin/kmod"
# shellcheck disable=SC2086
copy $programs /etc/protocols /etc/iproute2 "$xtables"
for family in ip ip6; do
    for command in '' -save -restore; do ln -s xtables-nft-multi "$network/usr/sbin/${family}tables$command"; done
done
mkdir -p "$network/sbin"
ln -s ../bin/kmod "$network/sbin/modprobe"
# shellcheck disable=SC2086
for library in $(chroot "$root" sh -c "ldd $programs $xtables/*.so" | sed -n 's|^[^/]*\(/[^ ]*\) (0x.*|\1|p' | sort -u); do
    mkdir -p "$network${library%/*}"
    cp -L "$root$library" "$network$library"
done

mkdir -p "$directory"
for name in packages network; do
    tar --create --file "$directory/$name.$$" --directory "$work/$name" --numeric-owner --one-file-system \
        --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' .
    mv "$directory/$name.$$" "$directory/$name.tar"
done
cp "$0" "$directory/kind_trees.sh"
