package main

import (
	"net/url"
	"testing"
)

func TestPathsAndScopesOfRequests(t *testing.T) {
	cases := []struct {
		request             request
		method, path, scope string
	}{
		{request{verb: "GET", resource: pods, namespace: "a", name: "b"}, "GET", "/api/v1/namespaces/a/pods/b", "resource"},
		{request{verb: "POST", resource: pods, namespace: "a"}, "POST", "/api/v1/namespaces/a/pods", "resource"},
		{request{verb: "POST", resource: pods, namespace: "a", name: "b", subresource: "binding"}, "POST", "/api/v1/namespaces/a/pods/b/binding", "resource"},
		{request{verb: "LIST", resource: pods, namespace: "a"}, "GET", "/api/v1/namespaces/a/pods", "namespace"},
		{request{verb: "LIST", resource: pods, query: url.Values{"limit": {"5"}}}, "GET", "/api/v1/pods?limit=5", "cluster"},
		{request{verb: "WATCH", resource: secrets, namespace: "a", name: "b", query: url.Values{"watch": {"true"}}}, "GET",
			"/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Db&watch=true", "resource"},
		{request{verb: "APPLY", resource: deployments, namespace: "a", name: "b"}, "PATCH", "/apis/apps/v1/namespaces/a/deployments/b", "resource"},
		{request{verb: "DELETECOLLECTION", resource: configMaps, namespace: "a"}, "DELETE", "/api/v1/namespaces/a/configmaps", "namespace"},
	}
	for _, one := range cases {
		r := one.request
		if r.method() != one.method || r.path() != one.path || r.scope() != one.scope {
			t.Errorf("%s: %s %s %s", one.path, r.method(), r.path(), r.scope())
		}
	}
}
