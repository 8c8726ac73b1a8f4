//go:build tools

package upstream

import (
	_ "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	_ "k8s.io/kubernetes/test/integration/framework"
)
