package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestTasksStartByTimeAlsoIfTheyAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		p := &pacer{record: newRecorder(), most: 100}
		begun := time.Now()
		var started atomic.Int64
		p.run(ctx, 10, 0.5, func(number int, scheduled time.Time) {
			if due := begun.Add(time.Duration(number)*100*time.Millisecond + 50*time.Millisecond); !scheduled.Equal(due) {
				t.Errorf("task %d was due at %v, expected %v", number, scheduled, due)
			}
			started.Add(1)
			time.Sleep(time.Minute)
		})
		p.tasks.Wait()
		if started.Load() != 9 {
			t.Errorf("%d tasks", started.Load())
		}
	})
}

func TestTasksBeyondTheBoundAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{record: newRecorder(), most: 2}
		p.record.begin()
		for range 5 {
			p.start(func() { time.Sleep(time.Second) })
		}
		p.tasks.Wait()
		if p.record.counter("skipped") != 3 {
			t.Errorf("%d skipped", p.record.counter("skipped"))
		}
	})
}

func TestLimitRunsEachNumberOnceAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var sum atomic.Int64
		err := limit(t.Context(), 100, 7, 50, func(number int) error {
			sum.Add(int64(number))
			return nil
		})
		if err != nil || sum.Load() != 4950 {
			t.Errorf("sum %d, %v", sum.Load(), err)
		}
		if took := time.Since(begun); took != 1980*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestLimitEndsWithTheFirstError(t *testing.T) {
	failed := errors.New("failed")
	var calls atomic.Int64
	err := limit(t.Context(), 1000, 1, 0, func(number int) error {
		calls.Add(1)
		if number == 3 {
			return failed
		}
		return nil
	})
	if !errors.Is(err, failed) || calls.Load() != 4 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}
