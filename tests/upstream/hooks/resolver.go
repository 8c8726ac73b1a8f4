package hooks

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	_ "unsafe" // for go:linkname

	"k8s.io/apiserver/pkg/util/webhook"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"

	"tetrapod/tests/upstream/server"
)

// serviceResolver is the variable of kube-apiserver that tests set by SetServiceResolverForTests.
//
//go:linkname serviceResolver k8s.io/kubernetes/cmd/kube-apiserver/app.testServiceResolver
var serviceResolver webhook.ServiceResolver

const egressConfiguration = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %s
`

// cleaner is the part of testing.TB that the proxy of a server needs.
type cleaner interface {
	Cleanup(f func())
	Fatal(arguments ...any)
}

// Resolved returns the flags of a server that reaches Services where the test's resolver says.
//
// The server dials into the cluster through a proxy that the test's process serves. The proxy asks the resolver at each CONNECT, without
// the name of a Service, which it does not know. The server itself resolves Services too, so they must exist.
func Resolved(t cleaner, directory string, flags []server.Flag) []server.Flag {
	if serviceResolver == nil || value(flags, "egress-selector-config-file", "") != "" {
		return flags
	}
	socket, configuration := filepath.Join(directory, "services.sock"), filepath.Join(directory, "services.yaml")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, egressConfiguration, socket), 0600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: http.HandlerFunc(connect)}
	go func() { _ = proxy.Serve(listener) }()
	t.Cleanup(func() { _ = proxy.Close() })
	return with(flags, "egress-selector-config-file", configuration)
}

// connect copies bytes between the client of a CONNECT and the address that the resolver returns.
func connect(w http.ResponseWriter, r *http.Request) {
	resolver := serviceResolver
	if resolver == nil || r.Method != http.MethodConnect {
		http.Error(w, "no CONNECT or no resolver", http.StatusBadRequest)
		return
	}
	target, err := resolver.ResolveEndpoint("", "", 443)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	backend, err := net.Dial("tcp", target.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer backend.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() {
		defer client.Close()
		defer backend.Close()
		_, _ = io.Copy(backend, client)
	}()
	_, _ = io.Copy(client, backend)
}
