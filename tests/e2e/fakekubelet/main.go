// A kubelet without pods: it speaks the real protocols (k8s.io/cri-streaming is what kubelets and container runtimes serve them with)
// and runs what it is asked to on this machine. It prints its port, and to stderr a line for each request.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const idle = time.Minute

type machine struct{}

func (machine) run(ctx context.Context, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	if tty {
		size := <-resize
		fmt.Fprintf(out, "terminal %dx%d\n", size.Width, size.Height)
	}
	command := exec.CommandContext(ctx, cmd[0], cmd[1:]...)
	command.Stdout, command.Stderr = out, errOut
	if in != nil { // not waited for: a terminal has no end of its own
		stdin, err := command.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			io.Copy(stdin, in)
			stdin.Close()
		}()
	}
	if errOut == nil {
		command.Stderr = out
	}
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: exit, Code: exit.ExitCode()}
	}
	return err
}

func (m machine) ExecInContainer(ctx context.Context, name string, uid string, container string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize, timeout time.Duration) error {
	return m.run(ctx, cmd, in, out, errOut, tty, resize)
}

func (m machine) AttachContainer(ctx context.Context, name string, uid string, container string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	return m.run(ctx, []string{"cat"}, in, out, errOut, tty, resize)
}

// PortForward leads to the port of this machine.
func (machine) PortForward(ctx context.Context, name string, uid string, port int32, stream io.ReadWriteCloser) error {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer connection.Close()
	go func() {
		io.Copy(connection, stream)
		connection.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, connection)
	return err
}

func (m machine) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	who := ""
	if len(req.TLS.PeerCertificates) > 0 {
		who = req.TLS.PeerCertificates[0].Subject.CommonName
	}
	asked, _ := json.Marshal(map[string]string{
		"method": req.Method, "uri": req.URL.RequestURI(), "upgrade": req.Header.Get("Upgrade"), "protocol": req.Header.Get("Sec-Websocket-Protocol"), "who": who,
	})
	fmt.Fprintln(os.Stderr, string(asked))
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	options, err := remotecommand.NewOptions(req)
	switch {
	case parts[0] == "exec" && err == nil:
		remotecommand.ServeExec(w, req, m, parts[2], "", parts[3], req.URL.Query()["command"], options, idle, idle, remotecommand.SupportedStreamingProtocols)
	case parts[0] == "attach" && err == nil:
		remotecommand.ServeAttach(w, req, m, parts[2], "", parts[3], options, idle, idle, remotecommand.SupportedStreamingProtocols)
	case parts[0] == "portForward":
		ports, err := portforward.NewV4Options(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, req, m, parts[2], "", ports, idle, idle, portforward.SupportedProtocols)
	case parts[0] == "containerLogs":
		fmt.Fprintf(w, "first line\n%s\n", req.URL.RequestURI())
		if req.URL.Query().Get("follow") == "true" {
			w.(http.Flusher).Flush()
			time.Sleep(200 * time.Millisecond)
			fmt.Fprintln(w, "and later")
		}
	default:
		fmt.Fprintf(w, "%s %s\n", req.Method, req.URL.RequestURI())
	}
}

func main() {
	certificate := flag.String("certificate", "", "PEM of our certificate")
	key := flag.String("key", "", "PEM of its key")
	flag.Parse()
	pair, err := tls.LoadX509KeyPair(*certificate, *key)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, machine{}))
}
