package main

import (
	"sort"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// histogram keeps durations from a microsecond to ten minutes with two significant digits.
type histogram struct {
	values *hdrhistogram.Histogram
}

const longest = 10 * time.Minute

func newHistogram() *histogram {
	return &histogram{hdrhistogram.New(1, longest.Microseconds(), 2)}
}

func (h *histogram) add(duration time.Duration) {
	duration = min(max(duration, time.Microsecond), longest)
	_ = h.values.RecordValue(duration.Microseconds())
}

// summary is a histogram in the result: milliseconds.
type summary struct {
	Count int64   `json:"count"`
	P50   float64 `json:"p50_ms"`
	P90   float64 `json:"p90_ms"`
	P99   float64 `json:"p99_ms"`
	Max   float64 `json:"max_ms"`
}

func (h *histogram) summary() summary {
	at := func(quantile float64) float64 { return float64(h.values.ValueAtQuantile(quantile)) / 1000 }
	return summary{h.values.TotalCount(), at(50), at(90), at(99), float64(h.values.Max()) / 1000}
}

// kindOfRequest are the labels of one series of latencies.
type kindOfRequest struct {
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Verb        string `json:"verb"`
	Scope       string `json:"scope"`
}

type series struct {
	count   int64
	latency *histogram
	errors  map[string]int64
}

// recorder collects the requests whose scheduled moment lies in the measured period.
type recorder struct {
	lock       sync.Mutex
	begun      time.Time
	ended      time.Time
	series     map[kindOfRequest]*series
	histograms map[string]*histogram
	counters   map[string]int64
	requests   int64 // of all phases
	failures   int64 // of all phases
}

func newRecorder() *recorder {
	return &recorder{series: map[kindOfRequest]*series{}, histograms: map[string]*histogram{}, counters: map[string]int64{}}
}

// begin starts the measured period.
func (r *recorder) begin() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.begun = time.Now()
}

// end ends the measured period. Requests that were scheduled in it are still recorded.
func (r *recorder) end() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.ended = time.Now()
}

func (r *recorder) within(moment time.Time) bool {
	return !r.begun.IsZero() && !moment.Before(r.begun) && (r.ended.IsZero() || moment.Before(r.ended))
}

// request records an answered or failed request. Failed requests are counted, and only answers below 400 have a latency.
func (r *recorder) request(of *request, scheduled time.Time, latency time.Duration, failure string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.requests++
	if failure != "" {
		r.failures++
	}
	if !r.within(scheduled) {
		return
	}
	kind := kindOfRequest{of.resource.group, of.resource.plural, of.subresource, of.verb, of.scope()}
	one := r.series[kind]
	if one == nil {
		one = &series{latency: newHistogram(), errors: map[string]int64{}}
		r.series[kind] = one
	}
	one.count++
	if failure != "" {
		one.errors[failure]++
	} else {
		one.latency.add(latency)
	}
}

// duration records a value of a named histogram that belongs to a moment.
func (r *recorder) duration(name string, moment time.Time, value time.Duration) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if !r.within(moment) {
		return
	}
	one := r.histograms[name]
	if one == nil {
		one = newHistogram()
		r.histograms[name] = one
	}
	one.add(value)
}

// count adds to a named counter if the measured period is on.
func (r *recorder) count(name string, amount int64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.within(time.Now()) {
		r.counters[name] += amount
	}
}

// row is a series in the result.
type row struct {
	kindOfRequest
	summary
	Count  int64            `json:"count"`
	Errors map[string]int64 `json:"errors,omitempty"`
}

func (r *recorder) rows() []row {
	r.lock.Lock()
	defer r.lock.Unlock()
	rows := []row{}
	for kind, one := range r.series {
		rows = append(rows, row{kind, one.latency.summary(), one.count, one.errors})
	}
	sort.Slice(rows, func(i, j int) bool {
		a, b := rows[i].kindOfRequest, rows[j].kindOfRequest
		if a.Group != b.Group {
			return a.Group < b.Group
		}
		if a.Resource != b.Resource {
			return a.Resource < b.Resource
		}
		if a.Subresource != b.Subresource {
			return a.Subresource < b.Subresource
		}
		if a.Verb != b.Verb {
			return a.Verb < b.Verb
		}
		return a.Scope < b.Scope
	})
	return rows
}

// summaryOf returns a named histogram, which is empty if nothing was recorded.
func (r *recorder) summaryOf(name string) summary {
	r.lock.Lock()
	defer r.lock.Unlock()
	if one := r.histograms[name]; one != nil {
		return one.summary()
	}
	return summary{}
}

func (r *recorder) counter(name string) int64 {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.counters[name]
}

// totals returns the requests and failures of all phases.
func (r *recorder) totals() (requests, failures int64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.requests, r.failures
}
