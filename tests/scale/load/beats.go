package main

import (
	"sync"
	"time"
)

// beats match writes of one object with the arrivals of their events at many watchers.
type beats struct {
	record   *recorder
	expected int // arrivals of each write

	lock      sync.Mutex
	known     map[string]*beat
	delivered int64
}

type beat struct {
	sent, answered time.Time
	early          []time.Time // arrivals before the answer, which tells the version
	count          int
}

func newBeats(record *recorder, expected int) *beats {
	return &beats{record: record, expected: expected, known: map[string]*beat{}}
}

func (b *beats) of(version string) *beat {
	one := b.known[version]
	if one == nil {
		one = &beat{}
		b.known[version] = one
	}
	return one
}

// saw registers the arrival of an event at one watcher.
func (b *beats) saw(version string, arrived time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	one := b.of(version)
	if one.sent.IsZero() {
		one.early = append(one.early, arrived)
		return
	}
	b.arrive(version, one, arrived)
}

// wrote registers an answered write.
func (b *beats) wrote(version string, sent, answered time.Time) {
	b.lock.Lock()
	defer b.lock.Unlock()
	one := b.of(version)
	one.sent, one.answered = sent, answered
	for _, arrived := range one.early {
		b.arrive(version, one, arrived)
	}
	one.early = nil
}

func (b *beats) arrive(version string, one *beat, arrived time.Time) {
	after := max(arrived.Sub(one.answered), 0)
	b.record.duration("delivery.from_sent", one.sent, arrived.Sub(one.sent))
	b.record.duration("delivery.from_answer", one.sent, after)
	b.delivered++
	if one.count++; one.count == b.expected {
		b.record.duration("delivery.last_from_sent", one.sent, arrived.Sub(one.sent))
		delete(b.known, version)
	}
}

// missing returns how many arrivals of answered writes did not come, and how many came.
func (b *beats) missing() (missing, delivered int64) {
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, one := range b.known {
		if !one.sent.IsZero() {
			missing += int64(b.expected - one.count)
		}
	}
	return missing, b.delivered
}
