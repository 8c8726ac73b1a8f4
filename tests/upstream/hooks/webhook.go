package hooks

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// serve answers reviews in the test's process, and returns the path of a kubeconfig for it.
func serve(t testing.TB, directory, name string, answer func(body []byte) (any, error)) string {
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			var review any
			if review, err = answer(body); err == nil {
				w.Header().Set("Content-Type", "application/json")
				err = json.NewEncoder(w).Encode(review)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	t.Cleanup(webhook.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["webhook"] = &clientcmdapi.Cluster{
		Server:                   webhook.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
	}
	config.Contexts["webhook"] = &clientcmdapi.Context{Cluster: "webhook", AuthInfo: "webhook"}
	config.AuthInfos["webhook"] = &clientcmdapi.AuthInfo{}
	config.CurrentContext = "webhook"
	path := filepath.Join(directory, name+"-webhook.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
