// Package server starts a Tetrapod process where upstream's integration tests start a kube-apiserver in their own.
//
// The patches in ../patches call it from upstream's test servers, after these have made and checked their options.
package server

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"
)

const (
	// Program is the environment variable that names the program to start.
	Program = "UPSTREAM_SERVER"
	// Logs is the environment variable that names the directory of the servers' logs.
	Logs = "UPSTREAM_LOGS"
	// HookMark begins the reason of a skip if a test changes parts of the server that only exist in its own process.
	HookMark = "not applicable: "

	// token authenticates as the user of upstream's loopback client.
	token       = "upstream-loopback-token"
	binaryMajor = 1
	binaryMinor = 37
	// floorMinor is the oldest release that a kube-apiserver process of this one emulates. In the process of a test there is no limit.
	floorMinor = binaryMinor - 3
	// grace is the time for a server to stop. A server that takes longer is killed.
	grace = 20 * time.Second
	// shownLog is how much of the log of a server that ended by itself becomes part of the error.
	shownLog = 3000
)

// WithoutLoopback is no flag of the server. It says that the loopback token is unknown to it.
var WithoutLoopback = Flag{Name: "without-loopback-token"}

var started atomic.Int64

// Logger is the part of testing.TB that a start needs.
type Logger interface {
	Logf(format string, args ...interface{})
}

// skipper is the part of testing.TB that ends a test that cannot apply.
type skipper interface {
	Skipf(format string, args ...interface{})
}

// Server is a running Tetrapod process.
type Server struct {
	// Errors receives an error if the server ends by itself, and is closed when it has ended.
	Errors chan error
	// Config is the configuration of a client with all permissions.
	Config *restclient.Config

	command  *exec.Cmd
	done     chan struct{}
	stopping atomic.Bool
}

// Start runs a server at the address of listener, which it closes. certDir contains the serving certificate.
func Start(t Logger, name, certDir string, listener net.Listener, flags []Flag) (*Server, error) {
	if emulated := utilfeature.DefaultMutableFeatureGate.EmulationVersion(); emulated.Minor() < floorMinor {
		text := fmt.Sprintf("%skube-apiserver emulates releases before 1.%d only in the process of a test", HookMark, floorMinor)
		if test, ok := t.(skipper); ok {
			test.Skipf("%s", text)
		}
		return nil, fmt.Errorf("%s", text)
	}
	config, err := ClientConfig(listener, certDir)
	if err != nil {
		return nil, err
	}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	tokens, flags, err := withToken(flags)
	if err != nil {
		return nil, err
	}
	tokenFile := filepath.Join(certDir, "loopback-tokens.csv")
	if err := os.WriteFile(tokenFile, tokens, 0600); err != nil {
		return nil, err
	}
	if !has(flags, WithoutLoopback.Name) {
		flags = append(flags, Flag{"token-auth-file", tokenFile})
	}
	flags = append(slices.DeleteFunc(flags, func(f Flag) bool { return f == WithoutLoopback }), Flag{"cert-dir", certDir}, Flag{"bind-address", "127.0.0.1"},
		Flag{"secure-port", fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)}, Flag{"controllers", "-*"})
	if !has(flags, "authorization-mode") && !has(flags, "authorization-config") {
		flags = append(flags, Flag{"authorization-mode", "AlwaysAllow"})
	}
	if !has(flags, "storage-media-type") {
		flags = append(flags, Flag{"storage-media-type", "application/vnd.kubernetes.protobuf"}) // upstream's default
	}
	server, err := run(t, name, append(flags, Gates()...))
	if err != nil {
		return nil, err
	}
	if has(flags, "tracing-config-file") { // as upstream's loopback client, send the trace context of the test
		config.Wrap(tracing.WrapperFor(tracing.NewNoopTracerProvider()))
	}
	server.Config = config
	return server, nil
}

// ClientConfig returns the configuration of a client with all permissions for the server that will listen there.
func ClientConfig(listener net.Listener, certDir string) (*restclient.Config, error) {
	certificate, err := os.ReadFile(filepath.Join(certDir, "apiserver.crt"))
	if err != nil {
		return nil, err
	}
	return &restclient.Config{
		QPS:                -1,
		Host:               fmt.Sprintf("https://127.0.0.1:%d", listener.Addr().(*net.TCPAddr).Port),
		BearerToken:        token,
		TLSClientConfig:    restclient.TLSClientConfig{CAData: certificate, ServerName: "localhost"},
		ContentConfig:      restclient.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
		DisableCompression: true,
	}, nil
}

// withToken returns the lines of the token file with the loopback user, and the flags without a token file of their own.
func withToken(flags []Flag) ([]byte, []Flag, error) {
	var tokens []byte
	var others []Flag
	for _, f := range flags {
		if f.Name != "token-auth-file" {
			others = append(others, f)
			continue
		}
		own, err := os.ReadFile(f.Value)
		if err != nil {
			return nil, nil, err
		}
		tokens = append(append(tokens, own...), '\n')
	}
	return fmt.Appendf(tokens, "%q,system:apiserver,upstream-loopback,system:masters\n", token), others, nil
}

// run starts the process with its log in a file of its own.
func run(t Logger, name string, flags []Flag) (*Server, error) {
	program := os.Getenv(Program)
	var arguments []string
	for _, f := range flags {
		arguments = append(arguments, "--"+f.Name+"="+f.Value)
	}
	file := fmt.Sprintf("%s.%d.log", strings.NewReplacer("/", "_", " ", "_").Replace(name), started.Add(1))
	log, err := os.Create(filepath.Join(os.Getenv(Logs), file[max(0, len(file)-200):]))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(log, "# %s %s\n", program, strings.Join(arguments, " "))
	t.Logf("starting Tetrapod with %s, log %s", strings.Join(arguments, " "), log.Name())
	command, err := onHost(program, arguments)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := command.Start(); err != nil {
		return nil, err
	}
	server := &Server{Errors: make(chan error, 1), command: command, done: make(chan struct{})}
	go server.wait(log.Name())
	return server, nil
}

// wait reports the end of the process, with the end of its log if nobody has asked for it.
func (s *Server) wait(log string) {
	err := s.command.Wait()
	if !s.stopping.Load() {
		text, _ := os.ReadFile(log)
		if _, rest, found := bytes.Cut(text, []byte("\n")); found {
			text = rest
		}
		s.Errors <- fmt.Errorf("Tetrapod ended by itself: %v: %s", err, text[max(0, len(text)-shownLog):])
	}
	close(s.Errors)
	close(s.done)
}

// Stop ends the process as a kubelet does, and returns when it has ended. Further calls wait for the first.
func (s *Server) Stop() {
	if s.stopping.CompareAndSwap(false, true) {
		_ = s.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.done:
		case <-time.After(grace):
			_ = s.command.Process.Kill()
		}
	}
	<-s.done
}
