// Prints the feature gates of kube-apiserver, one a line: name, stage, default, locked, the gates that it needs, and
// the same for former releases that can be emulated, as release:stage:default:locked.
package main

import (
	"fmt"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	baseversion "k8s.io/component-base/version"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// emulated is the number of former releases that can be emulated.
const emulated = 3

func main() {
	gates := utilfeature.DefaultMutableFeatureGate
	dependencies := gates.Dependencies()
	known := gates.GetAll()
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, string(name))
	}
	sort.Strings(names)
	former := map[string]map[featuregate.Feature]featuregate.FeatureSpec{}
	releases := []string{}
	for i := 1; i <= emulated; i++ {
		release := version.MustParse(baseversion.DefaultKubeBinaryVersion).SubtractMinor(uint(i))
		copied := gates.DeepCopy()
		if err := copied.SetEmulationVersionAndMinCompatibilityVersion(release, release.SubtractMinor(1)); err != nil {
			panic(err)
		}
		former[release.String()] = copied.GetAll()
		releases = append(releases, release.String())
	}
	for _, name := range names {
		gate := known[featuregate.Feature(name)]
		needs := []string{}
		for _, dependency := range dependencies[featuregate.Feature(name)] {
			needs = append(needs, string(dependency))
		}
		if len(needs) == 0 {
			needs = append(needs, "-")
		}
		history := []string{}
		for _, release := range releases {
			spec, ok := former[release][featuregate.Feature(name)]
			if !ok {
				history = append(history, release+":PREALPHA:false:false")
				continue
			}
			history = append(history, fmt.Sprintf("%s:%s:%t:%t", release, stage(spec), spec.Default, spec.LockToDefault))
		}
		fmt.Println(name, stage(gate), gate.Default, gate.LockToDefault, strings.Join(needs, ","), strings.Join(history, ","))
	}
}

func stage(gate featuregate.FeatureSpec) string {
	if gate.PreRelease == "" {
		return "GA"
	}
	return string(gate.PreRelease)
}
