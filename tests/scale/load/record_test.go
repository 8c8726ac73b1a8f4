package main

import (
	"testing"
	"time"
)

func TestPercentilesOfAHistogramAreWithinOnePercent(t *testing.T) {
	h := newHistogram()
	for milliseconds := range 1000 {
		h.add(time.Duration(milliseconds+1) * time.Millisecond)
	}
	got := h.summary()
	for name, pair := range map[string][2]float64{"p50": {got.P50, 500}, "p90": {got.P90, 900}, "p99": {got.P99, 990}, "max": {got.Max, 1000}} {
		if deviation := pair[0]/pair[1] - 1; deviation < -0.01 || deviation > 0.01 {
			t.Errorf("%s is %v, expected %v", name, pair[0], pair[1])
		}
	}
	if got.Count != 1000 {
		t.Errorf("count is %d", got.Count)
	}
}

func TestDurationsBeyondTheRangeAreClamped(t *testing.T) {
	h := newHistogram()
	h.add(-time.Second)
	h.add(time.Hour)
	if got := h.summary(); got.Count != 2 || got.Max < 599_000 {
		t.Errorf("%+v", got)
	}
}

func TestOnlyRequestsScheduledInThePeriodAreRecorded(t *testing.T) {
	r := newRecorder()
	of := &request{verb: "GET", resource: pods, namespace: "a", name: "b"}
	early := time.Now()
	r.request(of, early, time.Millisecond, "")
	r.begin()
	inside := time.Now()
	r.request(of, early, time.Millisecond, "")
	r.request(of, inside, time.Millisecond, "")
	r.request(of, inside, time.Millisecond, "503")
	r.end()
	r.request(of, inside, time.Millisecond, "")
	r.request(of, time.Now(), time.Millisecond, "")
	rows := r.rows()
	if len(rows) != 1 || rows[0].Count != 3 || rows[0].summary.Count != 2 || rows[0].Errors["503"] != 1 {
		t.Errorf("%+v", rows)
	}
	if requests, failures := r.totals(); requests != 6 || failures != 1 {
		t.Errorf("totals %d %d", requests, failures)
	}
}

func TestADeliveryIsRecordedInEitherOrder(t *testing.T) {
	r := newRecorder()
	d := newDeliveries(r)
	r.begin()
	ready := 0
	sent := time.Now()
	d.saw("7", byKubelet, sent.Add(time.Millisecond))
	d.wrote("7", sent, true, func(time.Time) { ready++ })
	d.saw("7", byCluster, time.Now().Add(time.Millisecond))
	d.saw("8", byCluster, time.Now()) // not a measured write
	if ready != 1 || r.summaryOf("delivery.kubelet.from_sent").Count != 1 || r.summaryOf("delivery.cluster.from_answer").Count != 1 {
		t.Errorf("ready %d, %+v", ready, r.histograms)
	}
	d.wrote("9", sent, false, nil)
	d.sweep(0)
	if len(d.known) != 0 || r.counter("undelivered") != 1 {
		t.Errorf("%d left, %d undelivered", len(d.known), r.counter("undelivered"))
	}
}
