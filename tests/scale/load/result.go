package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"
)

// version is that of the result's format.
const version = 1

// result is the document that --out gets. README.md describes its fields.
type result struct {
	Version     int                    `json:"version"`
	Command     string                 `json:"command"`
	Flags       map[string]string      `json:"flags"`
	Fill        *fillResult            `json:"fill,omitempty"`
	OpenSeconds float64                `json:"open_seconds,omitempty"`
	Steady      *steadyResult          `json:"steady,omitempty"`
	Requests    []row                  `json:"requests"`
	Lists       map[string]summary     `json:"lists,omitempty"`
	Watches     map[string]watchResult `json:"watches"`
	Delivery    map[string]summary     `json:"delivery,omitempty"`
	PodStartup  *summary               `json:"pod_startup,omitempty"`
	Flood       []row                  `json:"flood,omitempty"`
	Rounds      []roundResult          `json:"rounds,omitempty"`
	Objects     *objectsResult         `json:"objects,omitempty"`
	Generator   generatorResult        `json:"generator"`
}

type fillResult struct {
	Seconds         float64 `json:"seconds"`
	Nodes           int     `json:"nodes"`
	Pods            int     `json:"pods"`
	Services        int     `json:"services"`
	CustomResources int     `json:"custom_resources"`
	Requests        int64   `json:"requests"`
	Failures        int64   `json:"failures"`
}

type steadyResult struct {
	Seconds     float64 `json:"seconds"`
	Requests    int64   `json:"requests"`
	Failures    int64   `json:"failures"`
	Rate        float64 `json:"requests_per_second"`
	Lag         summary `json:"lag"`
	Skipped     int64   `json:"skipped"`
	Unfinished  int64   `json:"unfinished"`
	PodsCreated int64   `json:"pods_created"`
	PodsDeleted int64   `json:"pods_deleted"`
	PodsLost    int64   `json:"pods_lost"`
	Undelivered int64   `json:"undelivered"`
}

type watchResult struct {
	Open      int64  `json:"open"`
	Opened    int64  `json:"opened"`
	Synced    int64  `json:"synced"`
	Events    int64  `json:"events"`
	Bookmarks int64  `json:"bookmarks"`
	Relists   int64  `json:"relists"`
	Gone      int64  `json:"gone"`
	Failed    int64  `json:"failed"`
	LastError string `json:"last_error,omitempty"`
}

type generatorResult struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	MaxRSS     int64   `json:"max_rss_bytes"`

	begun time.Time
	cpu   float64
}

func newResult(command string, set *flag.FlagSet) *result {
	flags := map[string]string{}
	set.VisitAll(func(one *flag.Flag) {
		if one.Name != "token" && one.Name != "flood-token" {
			flags[one.Name] = one.Value.String()
		}
	})
	return &result{Version: version, Command: command, Flags: flags, Requests: []row{}, Watches: map[string]watchResult{}}
}

// begin and end enclose the phase whose CPU time of this process is reported.
func (r *result) begin() {
	r.Generator.begun = time.Now()
	r.Generator.cpu, _ = usage()
}

func (r *result) end() {
	cpu, memory := usage()
	r.Generator.CPUSeconds, r.Generator.MaxRSS = cpu-r.Generator.cpu, memory
	r.Steady = &steadyResult{Seconds: time.Since(r.Generator.begun).Seconds()}
}

// usage returns the CPU time of this process in seconds and its largest memory in bytes.
func usage() (cpu float64, memory int64) {
	of := syscall.Rusage{}
	if syscall.Getrusage(syscall.RUSAGE_SELF, &of) != nil {
		return 0, 0
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano()).Seconds(), of.Maxrss * 1024
}

// watchesOf returns the counters of a group of watches.
func watchesOf(counters *watchCounters) watchResult {
	last, _ := counters.lastFailure.Load().(string)
	return watchResult{
		counters.open.Load(), counters.opened.Load(), counters.synced.Load(), counters.events.Load(), counters.bookmarks.Load(),
		counters.relists.Load(), counters.gone.Load(), counters.failed.Load(), last,
	}
}

// sum copies the requests of the measured phase, and adds them up.
func (r *result) sum(record *recorder, pacer *pacer) {
	r.Requests = record.rows()
	for _, one := range r.Requests {
		r.Steady.Requests += one.Count
	}
	for _, count := range errorsOf(r.Requests) {
		r.Steady.Failures += count
	}
	r.Steady.Rate = float64(r.Steady.Requests) / r.Steady.Seconds
	r.Steady.Lag = record.summaryOf("lag")
	r.Steady.Unfinished = pacer.running.Load()
}

// complete copies the figures of a cluster's run.
func (c *cluster) complete(r *result, flood *recorder) {
	r.sum(c.record, c.pacer)
	steady := r.Steady
	steady.Skipped = c.record.counter("skipped")
	steady.PodsCreated, steady.PodsDeleted = c.record.counter("pods_created"), c.record.counter("pods_deleted")
	steady.PodsLost, steady.Undelivered = c.record.counter("pods_lost"), c.record.counter("undelivered")
	r.Lists = map[string]summary{}
	for _, name := range []string{"cached", "paged", "selector", "table"} {
		r.Lists[name] = c.record.summaryOf("list." + name)
	}
	for name, counters := range c.watches {
		r.Watches[name] = watchesOf(counters)
	}
	r.Delivery = map[string]summary{}
	for _, name := range observerNames {
		for _, from := range []string{"from_sent", "from_answer"} {
			r.Delivery[name+"_"+from] = c.record.summaryOf("delivery." + name + "." + from)
		}
	}
	startup := c.record.summaryOf("pod_startup")
	r.PodStartup = &startup
	if flood != nil {
		r.Flood = flood.rows()
	}
}

// write writes the document to a file, or to stdout as the event "result" if no file is named.
func (r *result) write(path string) error {
	if path == "" {
		announce("result", map[string]any{"result": r})
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// announce writes an event as a line of JSON to stdout.
func announce(event string, details map[string]any) {
	line := map[string]any{"event": event}
	for name, value := range details {
		line[name] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
