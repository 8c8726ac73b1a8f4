package main

import (
	"sync"
	"time"
)

// observer is one of the two watches whose delivery is measured.
type observer int

const (
	byKubelet observer = iota
	byCluster
	observers
)

var observerNames = [observers]string{"kubelet", "cluster"}

// delivery is a write of a pod with the arrivals of its event. Either may come first.
type delivery struct {
	sent, answered time.Time
	arrived        [observers]time.Time
	expected       [observers]bool
	created        time.Time // of the first arrival, for the sweep
	then           func(arrived time.Time)
}

// deliveries match writes with their events by resource version.
type deliveries struct {
	record *recorder
	lock   sync.Mutex
	known  map[string]*delivery
}

func newDeliveries(record *recorder) *deliveries {
	return &deliveries{record: record, known: map[string]*delivery{}}
}

// wrote registers an answered write. `then` is called with the arrival of its event at the watch of the whole cluster.
func (d *deliveries) wrote(version string, sent time.Time, kubelet bool, then func(arrived time.Time)) {
	if version == "" {
		return
	}
	answered := time.Now()
	d.lock.Lock()
	defer d.lock.Unlock()
	one := d.entry(version)
	one.sent, one.answered, one.then = sent, answered, then
	one.expected = [observers]bool{byKubelet: kubelet, byCluster: true}
	for who := range observers {
		d.match(one, who)
	}
	d.finish(version, one)
}

// saw registers the arrival of an event at one of the two watches.
func (d *deliveries) saw(version string, who observer, arrived time.Time) {
	d.lock.Lock()
	defer d.lock.Unlock()
	one := d.entry(version)
	if !one.arrived[who].IsZero() {
		return
	}
	one.arrived[who] = arrived
	if !one.sent.IsZero() {
		d.match(one, who)
		d.finish(version, one)
	}
}

func (d *deliveries) entry(version string) *delivery {
	one := d.known[version]
	if one == nil {
		one = &delivery{created: time.Now()}
		d.known[version] = one
	}
	return one
}

func (d *deliveries) match(one *delivery, who observer) {
	arrived := one.arrived[who]
	if arrived.IsZero() || !one.expected[who] {
		return
	}
	recordDelivery(d.record, who, one.sent, one.answered, arrived)
	if who == byCluster && one.then != nil {
		one.then(arrived)
		one.then = nil
	}
}

// recordDelivery records both figures. The second is zero if the event came before the answer.
func recordDelivery(record *recorder, who observer, sent, answered, arrived time.Time) {
	record.duration("delivery."+observerNames[who]+".from_sent", sent, arrived.Sub(sent))
	if answered.IsZero() || arrived.Before(answered) {
		answered = arrived
	}
	record.duration("delivery."+observerNames[who]+".from_answer", sent, arrived.Sub(answered))
}

func (d *deliveries) finish(version string, one *delivery) {
	for who := range observers {
		if one.expected[who] && one.arrived[who].IsZero() {
			return
		}
	}
	delete(d.known, version)
}

// sweep forgets entries that are older than the limit, and counts the events that never arrived.
func (d *deliveries) sweep(limit time.Duration) {
	d.lock.Lock()
	defer d.lock.Unlock()
	for version, one := range d.known {
		if time.Since(one.created) < limit {
			continue
		}
		if !one.sent.IsZero() {
			d.record.count("undelivered", 1)
		}
		delete(d.known, version)
	}
}
