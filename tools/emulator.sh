#!/bin/sh
# Enable this machine to run programs of arm64, in containers and in directories that debootstrap makes. On another processor, the kernel
# starts QEMU for each of them. The script needs root, installs qemu-user-static on Debian, and does nothing if that is set up.
set -eu
case $(uname -m) in aarch64 | arm64) exit 0 ;; esac
entries=/proc/sys/fs/binfmt_misc
[ -e $entries/register ] || mount -t binfmt_misc binfmt_misc $entries
if [ -e $entries/qemu-aarch64 ]; then exit 0; fi
if ! command -v qemu-aarch64-static >/dev/null 2>&1; then
    apt-get update -qq >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-user-static >/dev/null
fi
# The line has the ELF header of programs for arm64, and the mask of its significant bits. With the flag F the kernel keeps the emulator
# open, so that other root directories need no copy of it.
header='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
[ -e $entries/qemu-aarch64 ] || printf '%s' ":qemu-aarch64:M::$header:$mask:$(command -v qemu-aarch64-static):OCF" >$entries/register
