// Prints the feature gates of kube-apiserver, one a line: name, stage, default, locked, and the gates that it needs.
package main

import (
	"fmt"
	"sort"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	gates := utilfeature.DefaultMutableFeatureGate
	dependencies := gates.Dependencies()
	known := gates.GetAll()
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, string(name))
	}
	sort.Strings(names)
	for _, name := range names {
		gate := known[featuregate.Feature(name)]
		stage := string(gate.PreRelease)
		if stage == "" {
			stage = "GA"
		}
		needs := []string{}
		for _, dependency := range dependencies[featuregate.Feature(name)] {
			needs = append(needs, string(dependency))
		}
		if len(needs) == 0 {
			needs = append(needs, "-")
		}
		fmt.Println(name, stage, gate.Default, gate.LockToDefault, strings.Join(needs, ","))
	}
}
