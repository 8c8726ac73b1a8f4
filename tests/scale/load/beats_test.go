package main

import (
	"testing"
	"time"
)

func TestBeatsCountArrivalsBeforeAndAfterTheAnswer(t *testing.T) {
	r := newRecorder()
	b := newBeats(r, 3)
	r.begin()
	sent := time.Now()
	b.saw("7", sent.Add(time.Millisecond))
	b.wrote("7", sent, sent.Add(2*time.Millisecond))
	b.saw("7", sent.Add(3*time.Millisecond))
	if missing, delivered := b.missing(); missing != 1 || delivered != 2 {
		t.Errorf("%d missing, %d delivered", missing, delivered)
	}
	b.saw("7", sent.Add(9*time.Millisecond))
	if missing, _ := b.missing(); missing != 0 || len(b.known) != 0 {
		t.Errorf("%d missing, %d known", missing, len(b.known))
	}
	if last := r.summaryOf("delivery.last_from_sent"); last.Count != 1 || last.Max < 8.9 || last.Max > 9.1 {
		t.Errorf("%+v", last)
	}
	if after := r.summaryOf("delivery.from_answer"); after.Count != 3 || after.Max < 6.9 || after.Max > 7.1 {
		t.Errorf("%+v", after)
	}
}
