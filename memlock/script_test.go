package memlock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// epoch is when scripts begin.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// key is the lock that scripts are about.
var key = driver.Key{Kind: driver.KindRWMutex, Name: "x"}

// stage runs a script against a state machine. A line is "step: outcome", for instance
//
//	X a owner=A lease=5s: granted
//
// with the steps X (exclusive), R (read), U (upgradeable read), S with w=weight/limit (permits), each followed by try
// if need be, and release, keep, undo, renew, break, requeue and wait. What happens to waiting requests follows the
// outcome: "ok; b granted". Leases are 10 s unless the line says otherwise.
type stage struct {
	state *state
	now   time.Time
}

func play(t *testing.T, script string) *stage {
	t.Helper()
	st := &stage{state: newState(0), now: epoch}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		step, want, _ := strings.Cut(line, ": ")
		if got := st.step(t, strings.Fields(step)); got != want {
			t.Fatalf("%s\n got %s\nwant %s", step, got, want)
		}
	}
	return st
}

func (st *stage) step(t *testing.T, words []string) string {
	t.Helper()
	outcome := st.outcome(t, words[0], words[1:])
	for _, s := range st.state.settle() {
		if s.err != nil {
			outcome += fmt.Sprintf("; %s %s", s.ref.id, name(s.err))
			continue
		}
		outcome += fmt.Sprintf("; %s granted", s.ref.id)
	}
	return outcome
}

func (st *stage) outcome(t *testing.T, verb string, args []string) string {
	t.Helper()
	switch verb {
	case "X", "R", "U", "S":
		return entered(st.state.enter(st.now, demand{Request: request(t, verb, args), beside: beside(args)}))
	case "requeue":
		give := &driver.Release{Key: key, ID: args[0]}
		return entered(st.state.requeue(st.now, give, request(t, args[1], args[2:])))
	case "release":
		return name(st.state.release(st.now, &driver.Release{Key: key, ID: args[0]}))
	case "keep":
		return name(st.state.release(st.now, &driver.Release{Key: key, ID: args[0], Keep: span(t, args[1])}))
	case "undo":
		return name(st.state.release(st.now, &driver.Release{Key: key, ID: args[0], Undo: true, Horizon: time.Minute}))
	case "renew":
		return name(st.state.renew(st.now, &driver.Renewal{Key: key, ID: args[0], Lease: span(t, args[1])}))
	case "break":
		_, err := st.state.breakHolds(st.now, key, st.token(args[0]))
		return name(err)
	case "wait":
		st.now = st.now.Add(span(t, args[0]))
		st.state.advance(st.now)
		return "ok"
	}
	t.Fatalf("no step is called %q", verb)
	return ""
}

// token returns the token of a hold, or one that nobody has if id is no hold.
func (st *stage) token(id string) uint64 {
	if rec := st.state.records[ref{key, id}]; rec != nil {
		return rec.block.first
	}
	return 1
}

func request(t *testing.T, verb string, args []string) *driver.Request {
	t.Helper()
	r := &driver.Request{Key: key, ID: args[0], Weight: 1, Lease: 10 * time.Second, Tokens: 1}
	r.Mode = map[string]driver.Mode{"X": driver.Exclusive, "U": driver.Upgradeable}[verb]
	if verb == "R" || verb == "S" {
		r.Mode = driver.Shared
	}
	for _, arg := range args[1:] {
		field, value, _ := strings.Cut(arg, "=")
		switch field {
		case "try":
			r.Try = true
		case "owner":
			r.Owner, r.Named = value, true
		case "lease":
			r.Lease = span(t, value)
		case "delay":
			r.LockDelay = span(t, value)
		case "w":
			w, limit, _ := strings.Cut(value, "/")
			r.Weight, _ = strconv.Atoi(w)
			r.Limit, _ = strconv.Atoi(limit)
		case "beside": // see there
		default:
			t.Fatalf("no request has %q", arg)
		}
	}
	return r
}

// beside returns the hold beside which a step asks, or "" if it names none.
func beside(args []string) string {
	for _, arg := range args {
		if id, is := strings.CutPrefix(arg, "beside="); is {
			return id
		}
	}
	return ""
}

func span(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func entered(rec *record, err error) string {
	switch {
	case err != nil:
		return name(err)
	case rec.phase == waiting:
		return "queued"
	}
	return "granted"
}

// name returns a script's word for an outcome.
func name(err error) string {
	var lost *driver.LostError
	if errors.As(err, &lost) {
		return string(lost.Reason)
	}
	for word, sentinel := range map[string]error{
		"held": driver.ErrHeld, "conflict": driver.ErrConflict, "deadlock": driver.ErrDeadlock,
		"unsupported": driver.ErrUnsupported, "gone": driver.ErrLost, "free": driver.ErrNotHeld,
	} {
		if errors.Is(err, sentinel) {
			return word
		}
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}
