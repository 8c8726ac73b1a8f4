package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// target is the server with the credentials that its flags give.
type target struct {
	server    string
	authority string
	insecure  bool
	gzip      bool
	token     string
	tokenFile string
	timeout   time.Duration

	tls    *tls.Config
	tokens map[string]string
	record *recorder
}

func (t *target) flags(set *flag.FlagSet) {
	set.StringVar(&t.server, "server", "", "URL of the API server")
	set.StringVar(&t.authority, "certificate-authority", "", "file with the CA certificates of the server")
	set.BoolVar(&t.insecure, "insecure-skip-tls-verify", false, "accept any certificate of the server")
	set.StringVar(&t.token, "token", "", "bearer token of a user in system:masters")
	set.StringVar(&t.tokenFile, "node-tokens", "",
		"file with lines `token,user`; users without a line are impersonated by the administrator")
	set.BoolVar(&t.gzip, "gzip", true,
		"accept gzip as client-go does, which costs 50 kB of memory for each watch; controller manager and scheduler never do")
	set.DurationVar(&t.timeout, "timeout", time.Minute, "timeout of each request")
}

// prepare reads the files that the flags name.
func (t *target) prepare(record *recorder) error {
	t.record = record
	t.server = strings.TrimSuffix(t.server, "/")
	if t.server == "" {
		return errors.New("--server is missing")
	}
	t.tls = &tls.Config{InsecureSkipVerify: t.insecure}
	if t.authority != "" {
		bundle, err := os.ReadFile(t.authority)
		if err != nil {
			return err
		}
		t.tls.RootCAs = x509.NewCertPool()
		if !t.tls.RootCAs.AppendCertsFromPEM(bundle) {
			return fmt.Errorf("no certificate in %s", t.authority)
		}
	}
	t.tokens = map[string]string{}
	if t.tokenFile == "" {
		return nil
	}
	file, err := os.Open(t.tokenFile)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Split(lines.Text(), ","); len(fields) >= 2 {
			t.tokens[strings.TrimSpace(fields[1])] = strings.TrimSpace(fields[0])
		}
	}
	return lines.Err()
}

// client is one user on TLS connections of its own, like a component.
type client struct {
	server  string
	http    *http.Client
	header  http.Header
	timeout time.Duration
	record  *recorder
	apart   atomic.Pointer[recorder] // gets the requests too, if it is set
}

// note records a request.
func (c *client) note(r *request, scheduled time.Time, latency time.Duration, failure string) {
	c.record.request(r, scheduled, latency, failure)
	if apart := c.apart.Load(); apart != nil {
		apart.request(r, scheduled, latency, failure)
	}
}

// administrator returns a client with the token of the flags.
func (t *target) administrator(agent string) *client {
	header := http.Header{"Authorization": {"Bearer " + t.token}, "User-Agent": {agent}}
	transport := &http.Transport{
		TLSClientConfig:    t.tls.Clone(),
		ForceAttemptHTTP2:  true,
		DisableCompression: !t.gzip,
		// One connection is enough for the streams that the server allows; the transport opens a second one beyond.
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 30 * time.Second,
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
	}
	return &client{server: t.server, http: &http.Client{Transport: transport}, header: header, timeout: t.timeout, record: t.record}
}

// user returns a client of one user: with the user's token if the file has it, else impersonated by the administrator.
func (t *target) user(agent, name string, groups ...string) *client {
	made := t.administrator(agent)
	if token, ok := t.tokens[name]; ok {
		made.header.Set("Authorization", "Bearer "+token)
		return made
	}
	made.header.Set("Impersonate-User", name)
	for _, group := range groups {
		made.header.Add("Impersonate-Group", group)
	}
	return made
}

// plain makes the client ask for answers without compression.
func (c *client) plain() *client {
	c.http.Transport.(*http.Transport).DisableCompression = true
	return c
}

// statusError is an answer with a status of 400 or above.
type statusError struct {
	code       int
	retryAfter time.Duration
	message    string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.message) }

// hasCode tells whether an error is an answer with this status.
func hasCode(err error, code int) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == code
}

// send starts a request and returns the response with a status below 400.
func (c *client) send(ctx context.Context, r *request) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	sent, err := http.NewRequestWithContext(ctx, r.method(), c.server+r.path(), body)
	if err != nil {
		return nil, err
	}
	for name, values := range c.header {
		sent.Header[name] = values
	}
	accept := r.accept
	if accept == "" {
		accept = acceptProtobuf
	}
	sent.Header["Accept"] = []string{accept}
	if r.body != nil {
		contentType := r.contentType
		if contentType == "" {
			contentType = protobuf
		}
		sent.Header["Content-Type"] = []string{contentType}
	}
	response, err := c.http.Do(sent)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 400 {
		defer response.Body.Close()
		return nil, statusOf(response)
	}
	return response, nil
}

func statusOf(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	failed := &statusError{code: response.StatusCode, message: strings.TrimSpace(printable(text))}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		failed.retryAfter = time.Duration(seconds) * time.Second
	}
	return failed
}

// printable returns the message of an encoded Status, or the text itself.
func printable(body []byte) string {
	if raw, ok := unwrap(body); ok {
		status := metav1.Status{}
		if status.Unmarshal(raw) == nil {
			return status.Message
		}
	}
	return string(body)
}

// do sends a request once and returns the whole body of its answer. The latency counts from the scheduled moment.
func (c *client) do(ctx context.Context, r *request, scheduled time.Time) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var body []byte
	response, err := c.send(ctx, r)
	if err == nil {
		if r.discard {
			_, err = io.Copy(io.Discard, response.Body)
		} else {
			body, err = io.ReadAll(response.Body)
		}
		response.Body.Close()
	}
	if ctx.Err() == context.Canceled {
		return nil, ctx.Err()
	}
	c.note(r, scheduled, time.Since(scheduled), failureOf(err))
	return body, err
}

// call sends a request, and again after an answer with Retry-After or a broken connection, as client-go does.
func (c *client) call(ctx context.Context, r *request, scheduled time.Time) ([]byte, error) {
	for attempt := 0; ; attempt++ {
		body, err := c.do(ctx, r, scheduled)
		if err == nil || attempt == 10 || ctx.Err() != nil {
			return body, err
		}
		var status *statusError
		wait := time.Second
		if errors.As(err, &status) {
			if status.retryAfter == 0 {
				return body, err
			}
			wait = status.retryAfter
		}
		if !sleep(ctx, wait) {
			return nil, ctx.Err()
		}
		scheduled = time.Now()
	}
}

// failureOf returns the class under which an error is counted, or "" for none.
func failureOf(err error) string {
	var status *statusError
	var network net.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &status):
		return strconv.Itoa(status.code)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "eof"
	}
	return "connection"
}

// sleep waits and tells whether the context is still on.
func sleep(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
