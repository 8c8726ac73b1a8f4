package server

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/pflag"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
)

// Flag is a flag of kube-apiserver with one value. A flag that is given several times has several.
type Flag struct{ Name, Value string }

// Values are the values of all flags, each as the command line would give it.
type Values map[string][]string

// unsent are flags that the harness sets itself, and flags that only describe kube-apiserver's own process.
var unsent = []string{"bind-address", "secure-port", "cert-dir", "feature-gates", "emulated-version", "logging-format"}

// Read returns the present values of all flags of a server's options.
func Read(sets cliflag.NamedFlagSets) Values {
	values := Values{}
	for _, set := range sets.FlagSets {
		set.VisitAll(func(f *pflag.Flag) { values[f.Name] = rendered(f) })
	}
	return values
}

// Given returns the values of the flags that are given in a parsed set. It must be called before the options declare their flags once more,
// which sets some of them to their defaults.
func Given(set *pflag.FlagSet) Values {
	values := Values{}
	set.Visit(func(f *pflag.Flag) { values[f.Name] = rendered(f) })
	return values
}

// Over returns the values with those of others for the flags that it lacks.
func (v Values) Over(others Values) Values {
	all := maps.Clone(others)
	maps.Copy(all, v)
	return all
}

// rendered returns a flag's value as the arguments of a command line. A list that another value wraps (cliflag.Tracker) is only
// known by its type, and prints itself in brackets like a map.
func rendered(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if f.Value.Type() == "stringArray" {
			return slices.Clone(list.GetSlice())
		}
		return []string{strings.Join(list.GetSlice(), ",")}
	}
	if kind := f.Value.Type(); kind == "stringToString" || strings.HasSuffix(kind, "Slice") {
		return []string{strings.TrimSuffix(strings.TrimPrefix(f.Value.String(), "["), "]")}
	}
	if f.Name == "tls-sni-cert-key" {
		var pairs []string
		for _, pair := range strings.Split(strings.Trim(f.Value.String(), "[]"), ";") {
			if pair != "" {
				pairs = append(pairs, pair)
			}
		}
		return pairs
	}
	return []string{f.Value.String()}
}

// Changed returns the flags whose values differ from the defaults, by name.
func Changed(defaults, values Values) []Flag {
	var names []string
	for name, value := range values {
		if !slices.Equal(value, defaults[name]) && !slices.Contains(unsent, name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var flags []Flag
	for _, name := range names {
		for _, value := range values[name] {
			flags = append(flags, Flag{name, value})
		}
	}
	return flags
}

// Gates returns the flags of the feature gates and of the emulated version that the test has set in its process.
func Gates() []Flag {
	gates := utilfeature.DefaultMutableFeatureGate
	var changed, whole []string
	for _, stage := range stages {
		if stage.set(gates) {
			changed = append(changed, fmt.Sprintf("%s=%v", stage.name, stage.value))
			whole = append(whole, stage.stage)
		}
	}
	for name, spec := range gates.GetAll() {
		if name != "AllAlpha" && name != "AllBeta" && gates.Enabled(name) != spec.Default && !slices.Contains(whole, string(spec.PreRelease)) {
			changed = append(changed, fmt.Sprintf("%s=%v", name, gates.Enabled(name)))
		}
	}
	sort.Strings(changed)
	var flags []Flag
	if version := gates.EmulationVersion(); version.Major() != binaryMajor || version.Minor() != binaryMinor {
		flags = append(flags, Flag{"emulated-version", fmt.Sprintf("kube=%d.%d", version.Major(), version.Minor())})
	}
	if len(changed) > 0 {
		flags = append(flags, Flag{"feature-gates", strings.Join(changed, ",")})
	}
	return flags
}

// stage is a value that a test can give to all gates of a stage at once.
type stage struct {
	name  string
	stage string
	value bool
}

var stages = []stage{{"AllAlpha", string(featuregate.Alpha), true}, {"AllBeta", string(featuregate.Beta), true}, {"AllBeta", string(featuregate.Beta), false}}

// set returns whether all gates of the stage have the value, so far as they can be changed.
func (s stage) set(gates featuregate.MutableVersionedFeatureGate) bool {
	for name, spec := range gates.GetAll() {
		if name != "AllAlpha" && name != "AllBeta" && string(spec.PreRelease) == s.stage && !spec.LockToDefault && gates.Enabled(name) != s.value {
			return false
		}
	}
	return true
}

// Extensions returns the flags of an apiextensions-apiserver that differ from its defaults, as flags of kube-apiserver.
func Extensions(defaults, values *pflag.FlagSet) []Flag {
	sets := func(set *pflag.FlagSet) cliflag.NamedFlagSets {
		return cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{"": set}}
	}
	delegated := []string{"authentication-skip-lookup", "authentication-kubeconfig", "authorization-kubeconfig", "kubeconfig", "runtime-config"}
	flags := slices.DeleteFunc(Changed(Read(sets(defaults)), Read(sets(values))), func(f Flag) bool { return slices.Contains(delegated, f.Name) })
	return append(flags, Flag{"endpoint-reconciler-type", "none"}, Flag{"service-account-issuer", "https://foo.bar.example.com"})
}

// Advertising returns the flags with the address at which upstream's server would be reached by others.
func Advertising(flags []Flag, address net.IP) []Flag {
	if address == nil || has(flags, "advertise-address") {
		return flags
	}
	return append(flags, Flag{"advertise-address", address.String()})
}

func has(flags []Flag, name string) bool {
	return slices.ContainsFunc(flags, func(f Flag) bool { return f.Name == name })
}
