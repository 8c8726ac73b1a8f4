// Prints the feature gates of kube-apiserver, one a line: name, stage, default, locked, the gates that it needs, and
// the same for former releases that can be emulated, as release:stage:default:locked. Another oldest release of
// components than the one before may make a difference; then release/oldest:stage:default:locked follows.
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
	at := func(release, oldest *version.Version) map[featuregate.Feature]featuregate.FeatureSpec {
		copied := gates.DeepCopy()
		if err := copied.SetEmulationVersionAndMinCompatibilityVersion(release, oldest); err != nil {
			panic(err)
		}
		return copied.GetAll()
	}
	binary := version.MustParse(baseversion.DefaultKubeBinaryVersion)
	former := map[string]map[featuregate.Feature]featuregate.FeatureSpec{}
	releases := []string{}
	for i := uint(1); i <= emulated; i++ {
		release := binary.SubtractMinor(i)
		former[release.String()] = at(release, release.SubtractMinor(1))
		releases = append(releases, release.String())
	}
	type pair struct {
		name            string
		specs, ordinary map[featuregate.Feature]featuregate.FeatureSpec
	}
	pairs := []pair{}
	for i := uint(0); i <= emulated; i++ {
		release := binary.SubtractMinor(i)
		ordinary := at(release, release.SubtractMinor(1))
		for j := i; j <= emulated; j++ {
			oldest := binary.SubtractMinor(j)
			pairs = append(pairs, pair{release.String() + "/" + oldest.String(), at(release, oldest), ordinary})
		}
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
		for _, pair := range pairs {
			spec, ok := pair.specs[featuregate.Feature(name)]
			ordinary := pair.ordinary[featuregate.Feature(name)]
			if ok && (spec.Default != ordinary.Default || stage(spec) != stage(ordinary) || spec.LockToDefault != ordinary.LockToDefault) {
				history = append(history, fmt.Sprintf("%s:%s:%t:%t", pair.name, stage(spec), spec.Default, spec.LockToDefault))
			}
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
