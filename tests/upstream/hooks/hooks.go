// Package hooks passes what a test changes in the configuration of a kube-apiserver in its process on to another process.
//
// Authenticators and authorizers become webhooks that the test's process serves. Values that have a flag become flags.
// A test that changes anything else is skipped, because that part of the server cannot be reached from outside.
package hooks

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/storage"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"

	"tetrapod/tests/upstream/server"
)

// Modified calls the test's function and returns the flags of a server that is configured likewise.
func Modified(t testing.TB, config *controlplane.Config, modify func(*controlplane.Config), directory string, flags []server.Flag) []server.Flag {
	generic, extra := config.ControlPlane.Generic, &config.ControlPlane.Extra
	authentication := &keptAuthenticator{}
	authorization := &keptAuthorizer{}
	generic.Authentication.Authenticator = authentication
	generic.Authorization.Authorizer = authorization
	parts := unreachable(config)
	expiration, reconciler, apis := extra.ServiceAccountMaxExpiration, config.Extra.EndpointReconcilerType, enabled(config)

	modify(config)

	for name, part := range unreachable(config) {
		if part != parts[name] {
			t.Skipf("%sthe test replaces %s of the server in its process", server.HookMark, name)
		}
	}
	if extra.ServiceAccountMaxExpiration != expiration {
		flags = with(flags, "service-account-max-token-expiration", extra.ServiceAccountMaxExpiration.String())
	}
	if config.Extra.EndpointReconcilerType != reconciler {
		flags = with(flags, "endpoint-reconciler-type", string(config.Extra.EndpointReconcilerType))
	}
	for name, on := range enabled(config) {
		if on != apis[name] {
			flags = append(flags, server.Flag{Name: "runtime-config", Value: fmt.Sprintf("%s=%v", name, on)})
		}
	}
	if generic.LoopbackClientConfig.BearerToken == "" {
		flags = append(flags, server.WithoutLoopback)
	}
	if generic.Authentication.Authenticator != authentication {
		flags = authenticationFlags(t, generic.Authentication.Authenticator, authentication, directory, flags)
	}
	if generic.Authorization.Authorizer != authorization {
		flags = authorizationFlags(t, generic.Authorization.Authorizer, authorization, directory, flags)
	}
	return flags
}

// unreachable returns the identities of the parts that exist in the server's process only.
func unreachable(config *controlplane.Config) map[string]string {
	generic := config.ControlPlane.Generic
	parts := map[string]any{
		"the admission chain":        generic.AdmissionControl,
		"the audit backend":          generic.AuditBackend,
		"the parser of paths":        generic.RequestInfoResolver,
		"the OpenAPI definitions":    generic.OpenAPIConfig,
		"the chain of filters":       generic.BuildHandlerChainFunc,
		"the body limit":             generic.MaxRequestBodyBytes,
		"the check of long requests": generic.LongRunningFunc,
	}
	identities := map[string]string{}
	for name, part := range parts {
		identities[name] = identity(part)
	}
	return identities
}

func identity(part any) string {
	value := reflect.ValueOf(part)
	switch value.Kind() {
	case reflect.Func, reflect.Map, reflect.Pointer, reflect.Slice:
		return fmt.Sprint(value.Type(), value.Pointer())
	default:
		return fmt.Sprintf("%T %v", part, part)
	}
}

// enabled returns the APIs that the configuration names, by their keys in --runtime-config. A test can also name versions that
// no longer exist, which the flag rejects.
func enabled(config *controlplane.Config) map[string]bool {
	apis := map[string]bool{}
	source, ok := config.ControlPlane.APIResourceConfigSource.(*storage.ResourceConfig)
	if !ok {
		return apis
	}
	for version, on := range source.GroupVersionConfigs {
		if !legacyscheme.Scheme.IsVersionRegistered(version) {
			continue
		}
		apis[strings.TrimPrefix(version.String(), "/")] = on
	}
	for resource, on := range source.ResourceConfigs {
		apis[strings.TrimPrefix(resource.GroupVersion().String()+"/"+resource.Resource, "/")] = on
	}
	return apis
}

// with returns the flags with one value for a flag.
func with(flags []server.Flag, name, value string) []server.Flag {
	others := slices.DeleteFunc(slices.Clone(flags), func(f server.Flag) bool { return f.Name == name })
	return append(others, server.Flag{Name: name, Value: value})
}

// value returns the value of a flag, or the default.
func value(flags []server.Flag, name, otherwise string) string {
	var values []string
	for _, f := range flags {
		if f.Name == name {
			values = append(values, f.Value)
		}
	}
	if len(values) == 0 {
		return otherwise
	}
	return strings.Join(values, ",")
}
