#!/bin/sh
# Print the linker flags for Kubernetes' programs. They set the version that clients, kubelets and suites compare.
#   tools/version_ldflags.sh 1.37.1
set -eu
major=${1%%.*} rest=${1#*.}
package=k8s.io/component-base/version
echo "-s -w -X $package.gitVersion=v$1 -X $package.gitMajor=$major -X $package.gitMinor=${rest%%.*} -X $package.gitTreeState=clean"
