#!/bin/sh
# Turns a Debian system, with the files of kind's module, into that of a node. It runs in this system, and does what images/base/Dockerfile
# of the module does there.
set -eu
chmod 0755 /kind/bin/* /usr/local/bin/*
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
rm -f /lib/systemd/system/multi-user.target.wants/* /etc/systemd/system/*.wants/* /lib/systemd/system/local-fs.target.wants/*
rm -f /lib/systemd/system/sockets.target.wants/*udev* /lib/systemd/system/sockets.target.wants/*initctl*
rm -f /lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >> /etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd /sbin/init
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service
mkdir -p /etc/kubernetes/manifests
# Where the machine's root may not lower OOM scores, containers start without, and the kubelet accepts version 1 of control groups.
sed -i 's/restrict_oom_score_adj = false/restrict_oom_score_adj = true/' /etc/containerd/config.toml
sed -i 's/$/ --fail-cgroupv1=false/' /etc/default/kubelet
