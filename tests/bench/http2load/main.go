// http2load sends the requests of one work over one HTTP/2 connection, as client-go does, and prints its figures in
// the form of scripts/report.lua.
//
// Usage: http2load URL TOKEN ACCEPT ENCODING METHOD CONTENT-TYPE START MODULUS BODY-FILE STREAMS SECONDS
//
// In URL and body every @N@ is replaced by a number that grows from START, and @M@ by that number modulo MODULUS.
package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type result struct {
	latencies []time.Duration
	bytes     int64
	rejected  int
	broken    int
}

func main() {
	arguments := os.Args[1:]
	url, token, accept, encoding := arguments[0], arguments[1], arguments[2], arguments[3]
	method, contentType := arguments[4], arguments[5]
	number, modulus := int64(integer(arguments[6])), int64(integer(arguments[7]))
	var body string
	if arguments[8] != "" {
		content, err := os.ReadFile(arguments[8])
		if err != nil {
			panic(err)
		}
		body = string(content)
	}
	streams, seconds := integer(arguments[9]), integer(arguments[10])

	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
		// As wrk: responses are counted as they are sent.
		DisableCompression: true,
	}}
	results := make([]result, streams)
	began := time.Now()
	deadline := began.Add(time.Duration(seconds) * time.Second)
	var group sync.WaitGroup
	for i := range results {
		group.Add(1)
		go func(found *result) {
			defer group.Done()
			buffer := make([]byte, 64<<10)
			for time.Now().Before(deadline) {
				n := atomic.AddInt64(&number, 1)
				m := int64(0)
				if modulus > 0 {
					m = n % modulus
				}
				fill := strings.NewReplacer("@N@", strconv.FormatInt(n, 10), "@M@", strconv.FormatInt(m, 10))
				request, err := http.NewRequest(method, fill.Replace(url), strings.NewReader(fill.Replace(body)))
				if err != nil {
					panic(err)
				}
				request.Header.Set("Authorization", "Bearer "+token)
				request.Header.Set("Accept", accept)
				if encoding != "" {
					request.Header.Set("Accept-Encoding", encoding)
				}
				if contentType != "" {
					request.Header.Set("Content-Type", contentType)
				}
				found.send(client, request, buffer, deadline)
			}
		}(&results[i])
	}
	group.Wait()
	report(results, time.Since(began))
}

// send sends a request and reads the response, at most until the deadline: its bytes until then count.
func (r *result) send(client *http.Client, request *http.Request, buffer []byte, deadline time.Time) {
	began := time.Now()
	response, err := client.Do(request)
	if err != nil {
		r.broken++
		return
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		panic("the server does not speak HTTP/2")
	}
	for {
		n, err := response.Body.Read(buffer)
		r.bytes += int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			r.broken++
			return
		}
		if time.Now().After(deadline) && n > 0 && time.Since(began) > time.Second {
			return
		}
	}
	r.latencies = append(r.latencies, time.Since(began))
	if response.StatusCode >= 400 {
		r.rejected++
	}
}

func report(results []result, duration time.Duration) {
	var all result
	for _, one := range results {
		all.latencies = append(all.latencies, one.latencies...)
		all.bytes += one.bytes
		all.rejected += one.rejected
		all.broken += one.broken
	}
	sort.Slice(all.latencies, func(i, j int) bool { return all.latencies[i] < all.latencies[j] })
	fmt.Printf("\nBENCH {\"requests\":%d,\"bytes\":%d,\"duration\":%d,\"p50\":%d,\"p99\":%d,\"status\":%d,\"broken\":%d}\n",
		len(all.latencies), all.bytes, duration.Microseconds(), percentile(all.latencies, 50).Microseconds(),
		percentile(all.latencies, 99).Microseconds(), all.rejected, all.broken)
}

func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}

func integer(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
