package main

import (
	"net/url"
)

// resource names a kind of objects in the API.
type resource struct {
	group, version, plural string
	namespaced             bool
}

var (
	namespaces      = resource{"", "v1", "namespaces", false}
	nodes           = resource{"", "v1", "nodes", false}
	pods            = resource{"", "v1", "pods", true}
	services        = resource{"", "v1", "services", true}
	configMaps      = resource{"", "v1", "configmaps", true}
	secrets         = resource{"", "v1", "secrets", true}
	serviceAccounts = resource{"", "v1", "serviceaccounts", true}
	coreEvents      = resource{"", "v1", "events", true}
	newEvents       = resource{"events.k8s.io", "v1", "events", true}
	leases          = resource{"coordination.k8s.io", "v1", "leases", true}
	endpointSlices  = resource{"discovery.k8s.io", "v1", "endpointslices", true}
	replicaSets     = resource{"apps", "v1", "replicasets", true}
	deployments     = resource{"apps", "v1", "deployments", true}
	runtimeClasses  = resource{"node.k8s.io", "v1", "runtimeclasses", false}
	csiDrivers      = resource{"storage.k8s.io", "v1", "csidrivers", false}
	definitions     = resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions", false}
	widgets         = resource{"scale.tetrapod.dev", "v1", "widgets", true}
)

const (
	protobuf       = "application/vnd.kubernetes.protobuf"
	acceptProtobuf = protobuf + ",application/json"
	acceptMetadata = protobuf + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	acceptTable    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	jsonType       = "application/json"
	strategicPatch = "application/strategic-merge-patch+json"
	mergePatch     = "application/merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// request is a call of the API. An empty accept asks for protobuf.
type request struct {
	verb        string // as in apiserver_request_sli_duration_seconds: GET, LIST, POST, PUT, PATCH, APPLY, DELETE, WATCH, …
	resource    resource
	namespace   string
	name        string
	subresource string
	query       url.Values
	accept      string
	contentType string
	body        []byte
	discard     bool // the answer is read and not kept
}

var methods = map[string]string{"LIST": "GET", "WATCH": "GET", "WATCHLIST": "GET", "APPLY": "PATCH", "DELETECOLLECTION": "DELETE"}

func (r *request) method() string {
	if method, ok := methods[r.verb]; ok {
		return method
	}
	return r.verb
}

// path returns the path and the query below the server's URL. The name of a list or watch goes into a field selector, as
// kubelets ask for one object.
func (r *request) path() string {
	path := "/api/" + r.resource.version
	if r.resource.group != "" {
		path = "/apis/" + r.resource.group + "/" + r.resource.version
	}
	if r.namespace != "" {
		path += "/namespaces/" + r.namespace
	}
	path += "/" + r.resource.plural
	if r.name != "" && !r.isCollection() {
		path += "/" + r.name
	}
	if r.subresource != "" {
		path += "/" + r.subresource
	}
	query := r.query
	if r.name != "" && r.isCollection() {
		query = url.Values{}
		for key, values := range r.query {
			query[key] = values
		}
		query.Set("fieldSelector", "metadata.name="+r.name)
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path
}

func (r *request) isCollection() bool {
	switch r.verb {
	case "LIST", "WATCH", "WATCHLIST", "DELETECOLLECTION":
		return true
	}
	return false
}

// scope returns the label that apiserver_request_sli_duration_seconds has.
// Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/metrics/metrics.go, CleanScope.
func (r *request) scope() string {
	switch {
	case r.name != "" || r.verb == "POST":
		return "resource"
	case r.namespace != "":
		return "namespace"
	}
	return "cluster"
}
