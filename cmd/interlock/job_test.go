package main

import (
	"os"
	"testing"
	"time"
)

// fixedHold is a hold whose renewals have stopped: its deadline stays where it is, and nobody says that it is lost.
type fixedHold struct{ deadline time.Time }

func (h fixedHold) Lost() <-chan struct{} { return nil }
func (h fixedHold) Err() error            { return nil }
func (h fixedHold) Deadline() time.Time   { return h.deadline }

// runJob runs a shell script under a hold.
func runJob(t *testing.T, h hold, b budget, script string) jobEnd {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	j := &job{
		hold: h, budget: b, signals: make(chan os.Signal, 1), say: t.Logf,
		path: "/bin/sh", argv: []string{"sh", "-c", script}, env: os.Environ(),
	}
	end, err := j.run(null, null, null)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestJob_IsDeadAMarginBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	// TERM is due after 4 s, for the shell has its trap then, and KILL a second later: the rest is for busy machines.
	deadline := time.Now().Add(15 * time.Second)
	end := runJob(t, fixedHold{deadline}, budget{grace: time.Second, margin: 10 * time.Second},
		`trap "" TERM; while :; do sleep 0.05; done`)
	if left := time.Until(deadline); left <= 0 {
		t.Errorf("the job ended %v after the deadline", -left)
	}
	if !end.lost || end.code() != 128+9 {
		t.Errorf("lost %v, code %d; want a kill because of the lock", end.lost, end.code())
	}
}

func TestJob_GetsTermAGraceBeforeThat(t *testing.T) {
	t.Parallel()
	// TERM is due after 4 s, for the shell has its trap then, and 15 s are left.
	deadline := time.Now().Add(19 * time.Second)
	end := runJob(t, fixedHold{deadline}, budget{grace: 10 * time.Second, margin: 5 * time.Second},
		`trap "exit 5" TERM; while :; do sleep 0.05; done`)
	if left := time.Until(deadline); left < 11*time.Second {
		t.Errorf("TERM came so late that only %v were left", left)
	}
	if !end.lost || end.code() != 5 {
		t.Errorf("lost %v, code %d; want the code that the job ended with after TERM", end.lost, end.code())
	}
}

func TestJob_WithoutADeadline_EndsByItself(t *testing.T) {
	t.Parallel()
	if end := runJob(t, fixedHold{}, budget{}, "exit 3"); end.lost || end.code() != 3 {
		t.Errorf("lost %v, code %d", end.lost, end.code())
	}
}
