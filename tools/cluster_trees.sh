#!/bin/sh
# Make two tar archives in the directory $1. The images of `make cluster` are built on them, because no image registry is used:
#   debian.tar   a Debian system with the commands that the images of upstream's suite have
#   busybox.tar  busybox with the libraries that it needs
# The script needs root and debootstrap. It does nothing if this version of it has made both archives already.
set -eu
directory=$1
if cmp -s "$0" "$directory/cluster_trees.sh"; then exit 0; fi
packages=bash,bind9-dnsutils,busybox,conntrack,curl,iperf,iproute2,iptables,iputils-ping,netcat-openbsd,nginx-light,perl,procps,socat,util-linux-extra
packages=$packages,wget  # busybox 1.35 crashes with wget -T

suite=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}" || true)
suite=${suite:-bookworm}
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -v -e security -e updates | head -n 1 || true)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/debian small=$work/busybox
debootstrap --variant=minbase --include="$packages" "$suite" "$root" "${mirror:-http://deb.debian.org/debian}" >&2

mkdir -p "$small/bin" "$small/etc" "$small/home" "$small/root" "$small/tmp" "$small/usr" "$small/var"
chmod 1777 "$small/tmp"
cp "$root/bin/busybox" "$root/bin/bash" "$small/bin/"
for library in $(chroot "$root" ldd /bin/busybox /bin/bash | sed -n 's|^[^/]*\(/[^ ]*\) (0x.*|\1|p' | sort -u); do
    mkdir -p "$small$(dirname "$library")"
    cp -L "$root$library" "$small$library"
done
chroot "$small" /bin/busybox --install -s /bin
printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n' > "$small/etc/passwd"
printf 'root:x:0:\nnobody:x:65534:\n' > "$small/etc/group"

# The shells of the suite's own images keep environment variables whose names have dashes. Debian's shells remove them, except for bash.
ln -sf bash "$root/bin/sh"
rm "$small/bin/sh"
cc -O2 -static -o "$small/bin/sh" "$(dirname "$0")/cluster/busybox/sh.c"
# A spec about the groups of a user expects this user and this group in the image.
printf 'user-defined-in-image:x:1000:1000::/home:/bin/sh\n' >> "$root/etc/passwd"
printf 'user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n' >> "$root/etc/group"
# Link the commands that only busybox has, such as vi.
mkdir -p "$root/usr/local/bin"
for name in $(chroot "$root" busybox --list); do
    if ! chroot "$root" sh -c "command -v $name" >/dev/null; then ln -s /bin/busybox "$root/usr/local/bin/$name"; fi
done
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
for part in man doc locale info lintian doc-base; do rm -rf "$root/usr/share/$part"; done

mkdir -p "$directory"
for name in busybox debian; do
    tar --create --file "$directory/$name.$$" --directory "$work/$name" --numeric-owner --one-file-system \
        --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' .
    mv "$directory/$name.$$" "$directory/$name.tar"
done
cp "$0" "$directory/cluster_trees.sh"
