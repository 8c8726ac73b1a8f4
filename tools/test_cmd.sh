#!/bin/bash
# Run upstream's tests of kubectl (hack/make-rules/test-cmd.sh) over Tetrapod, an etcd and upstream's kube-controller-manager.
#   tools/test_cmd.sh                                 runs all tests
#   tools/test_cmd.sh run_pod_tests run_wait_tests    runs these functions of upstream's test/cmd
# PYTHON is an interpreter that has Tetrapod's dependencies, .venv/bin/python by default. The ports are those of upstream: ETCD_PORT (2379),
# SECURE_API_PORT (6443) and 10257 for the controller manager. The first run builds the programs, which takes minutes.
#
# Upstream's scripts run unchanged, except that upstream's make does not build the programs. ALLOW_SKEW lets `goVersion` differ between
# kubectl and the server.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -nE 's|^(require)?[[:space:]]*k8s\.io/kubernetes v([0-9.]+)$|\2|p' "$here/stock/go.mod")
programs="${TETRAPOD_CACHE:-$HOME/.cache/tetrapod}/test-cmd-$version"
source=$(cd "$here/cluster/kubernetes" && GOFLAGS=-mod=readonly go list -m -f '{{.Dir}}' k8s.io/kubernetes)
mkdir -p "$programs"
for name in kubectl kubectl-convert; do
    [ -x "$programs/$name" ] && continue
    # Build under another name first, so that another run at the same time sees no incomplete binary.
    (cd "$here/cluster/kubernetes" && CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -p 2 -trimpath -buildvcs=false \
        -ldflags "$("$here/version_ldflags.sh" "$version")" -o "$programs/$name.$$" "k8s.io/kubernetes/cmd/$name")
    mv "$programs/$name.$$" "$programs/$name"
done
etcd=$("$here/etcd.sh")
stock=$("$here/stock.sh")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$source" && cp -r --parents --no-preserve=mode hack cluster test/cmd test/fixtures test/e2e/testing-manifests third_party/forked "$work")
cd "$work"
find test/fixtures/pkg/kubectl/plugins -name 'kubectl-*' -exec chmod +x {} + # Go modules have no modes
# WHAT names functions, and not only those whose names end with _tests.
sed -i 's/record_command "run_${pkg}_tests"/record_command "${pkg}"/' test/cmd/legacy-script.sh
mkdir -p _output/bin without-make tmp
ln -s "$programs/kubectl" "$programs/kubectl-convert" "$stock/kube-controller-manager" "$etcd" _output/bin
printf '#!/bin/sh\n' > without-make/make
cat > _output/bin/kube-apiserver <<EOF
#!/bin/sh
PYTHONPATH='$here/../services' exec '$(realpath --no-symlinks "${PYTHON:-$here/../.venv/bin/python}")' -c 'from tetrapod.cli.kube_apiserver import main; main()' "\$@"
EOF
chmod +x _output/bin/kube-apiserver without-make/make
export PATH="$work/without-make:$work/_output/bin:$PATH" TMPDIR="$work/tmp" WHAT="$*" ALLOW_SKEW=true
ETCD_VERSION=$(etcd --version | sed -n 's/^etcd Version: //p')
export ETCD_VERSION SERVICE_ACCOUNT_KEY="$work/service-account.key" KUBE_JUNIT_REPORT_DIR="$work/junit"
bash hack/make-rules/test-cmd.sh
