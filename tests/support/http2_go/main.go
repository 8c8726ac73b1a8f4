// A Go server as aggregated API servers are: TLS with HTTP/2, which answers with what it has received.
//
// Its arguments are the certificate and the key, and "only-http2" to speak no HTTP/1.1. It prints its port.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Version", r.Proto)
		w.Header().Set("X-Host", r.Host)
		w.Header().Set("X-User", r.Header.Get("X-Remote-User"))
		w.Header().Set("Trailer", "X-Sum")
		n, _ := io.Copy(w, r.Body)
		w.Header().Set("X-Sum", fmt.Sprint(n))
	})
	mux.HandleFunc("/watch", func(w http.ResponseWriter, r *http.Request) {
		for n := 0; n < 3; n++ {
			fmt.Fprintf(w, "event %d\n", n)
			w.(http.Flusher).Flush()
		}
		if r.URL.Query().Get("end") == "" {
			<-r.Context().Done()
		}
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 8<<20))
	})
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	server := &http.Server{Handler: mux, TLSConfig: config}
	if len(os.Args) > 3 && os.Args[3] == "only-http2" {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP2(true)
	}
	panic(server.ServeTLS(listener, "", ""))
}
