#!/bin/sh
# Build the programs that `make cluster` and `make conformance` run beside Tetrapod and the components of tools/stock.sh, and print their
# directory. They are built once, from the modules that are pinned below tools/cluster.
#   tools/cluster.sh              builds the programs of a cluster: kubelet, kube-proxy, containerd, CNI plugins, CoreDNS, a provisioner of
#                                 volumes, agnhost
#   tools/cluster.sh conformance  also builds the conformance suite and its programs: kubectl, ginkgo, a registry, programs of images
#   tools/cluster.sh kind         also builds the other programs of a node image of kind, into the subdirectory kind: kubeadm, kubectl, the
#                                 control plane with its etcd, crictl, and kube-router for the network of pods and NetworkPolicies
#   tools/cluster.sh registry     builds only the registry (CNCF distribution)
#   tools/cluster.sh --where      only prints the directory
# The directory is below $TETRAPOD_CACHE, else below ~/.cache/tetrapod. The first build takes several minutes on two cores.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|^\t*\(require \)*k8s.io/kubernetes v||p' "$here/cluster/kubernetes/go.mod")
directory="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/cluster-$version"

# MODULE PACKAGE [go build arguments...]: build a package in the module tools/cluster/MODULE. The program is named after the last element of
# the package. If the package is `.`, the program is this project's MODULE/main.go, and is built again when that file has changed.
build() {
    module=$1 package=$2 name=${2##*/}
    shift 2
    case $package in .) name=$module ;; go.etcd.io/etcd/server/v3) name=etcd ;; esac
    own=/dev/null
    case $package in .) own=$here/cluster/$module/main.go ;; esac
    if [ -x "$directory/$name" ] && { [ "$own" = /dev/null ] || cmp -s "$own" "$directory/$name.go"; }; then return 0; fi
    echo "cluster: building $name" >&2
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    command=build
    case $name in *.test) command='test -c' package=${package%.test} ;; esac
    # shellcheck disable=SC2086
    (cd "$here/cluster/$module" && CGO_ENABLED=0 GOFLAGS=-mod=readonly go $command -p 2 -trimpath -buildvcs=false "$@" \
        -o "$directory/$name.$$" "$package") >&2
    mv "$directory/$name.$$" "$directory/$name"
    [ "$own" = /dev/null ] || cp "$own" "$directory/$name.go"
}

kubernetes() { # PACKAGE
    build kubernetes "$1" -ldflags "$("$here/version_ldflags.sh" "$version")"
}

if [ "${1:-}" = registry ]; then
    mkdir -p "$directory"
    build registry . -ldflags '-s -w'
elif [ "${1:-}" != --where ]; then
    mkdir -p "$directory"
    kubernetes k8s.io/kubernetes/cmd/kubelet
    kubernetes k8s.io/kubernetes/cmd/kube-proxy
    kubernetes k8s.io/kubernetes/test/images/agnhost
    source=$(cd "$here/cluster/kubernetes" && GOFLAGS=-mod=readonly go list -m -f '{{.Dir}}' k8s.io/kubernetes)
    if [ ! -d "$directory/files" ]; then # These files are copied into images of the suite
        mkdir "$directory/files.$$"
        cp "$source/test/images/agnhost/porter/localhost.crt" "$source/test/images/agnhost/porter/localhost.key" "$directory/files.$$"
        for name in kitten nautilus; do cp -r "$source/test/images/$name/html" "$directory/files.$$/$name"; done
        mv "$directory/files.$$" "$directory/files"
    fi
    if [ ! -x "$directory/pause" ]; then
        echo "cluster: building pause" >&2
        cc -O2 -static -o "$directory/pause.$$" "$source/build/pause/linux/pause.c"
        mv "$directory/pause.$$" "$directory/pause"
    fi
    for name in containerd containerd-shim-runc-v2 ctr; do
        build containerd "github.com/containerd/containerd/v2/cmd/$name" -tags no_btrfs -ldflags '-s -w'
    done
    for name in main/bridge main/loopback ipam/host-local meta/portmap; do
        build cni "github.com/containernetworking/plugins/plugins/$name" -ldflags '-s -w'
    done
    build coredns . -ldflags '-s -w'
    build storage github.com/rancher/local-path-provisioner -ldflags '-s -w'
fi
if [ "${1:-}" = conformance ]; then
    build registry . -ldflags '-s -w'
    build kubernetes github.com/onsi/ginkgo/v2/ginkgo -ldflags '-s -w'
    build kubernetes k8s.io/kubernetes/test/images/nonewprivs -ldflags '-s -w'
    build kubernetes k8s.io/kubernetes/test/images/regression-issue-74839 -ldflags '-s -w'
    kubernetes k8s.io/kubernetes/cmd/kubectl
    kubernetes k8s.io/kubernetes/test/e2e.test
fi
if [ "${1:-}" = kind ]; then
    kubernetes k8s.io/kubernetes/cmd/kubectl
    cluster=$directory directory=$directory/kind
    mkdir -p "$directory"
    for name in kubeadm kube-apiserver kube-controller-manager kube-scheduler; do kubernetes "k8s.io/kubernetes/cmd/$name"; done
    build coredns . -ldflags '-s -w'
    build ../etcd go.etcd.io/etcd/server/v3 -ldflags '-s -w'
    for program in sigs.k8s.io/cri-tools/cmd/crictl@v1.36.0 github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v2.1.0; do
        name=${program##*/} name=${name%@*}
        [ -x "$directory/$name" ] || cp "$(CGO_ENABLED=0 "$here/go_install.sh" "$name-${program##*@}" "$program" -p 2)" "$directory/"
    done
    directory=$cluster
fi
echo "$directory"
