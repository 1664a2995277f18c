package enginekit_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

var (
	errFirst = errors.New("the first refusal")
	errLater = errors.New("a later one")
)

const lease = 10 * time.Second

// A session without refusals grants, and lasts.
func TestRefusals_NoneAtFirst(t *testing.T) {
	var r enginekit.Refusals[string]
	if r.Err() != nil || r.Spent(lease, true) || r.Spent(lease, false) {
		t.Error("a session that nothing was refused to is given up")
	}
	if r.Settled("a") {
		t.Error("what was never refused was the last refusal")
	}
}

// A refusal stops grants at once. The session ends when nobody holds anything, and after a lease in any case.
func TestRefusals_EndTheSessionWithItsLastHoldOrAfterALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r enginekit.Refusals[string]
		r.Refused("a", errFirst)
		if err := r.Err(); !errors.Is(err, errFirst) {
			t.Errorf("the session grants, or does not say why not: %v", err)
		}
		if !r.Spent(lease, false) {
			t.Error("a session in which nobody holds anything goes on")
		}
		time.Sleep(lease - time.Nanosecond)
		if r.Spent(lease, true) {
			t.Error("the holds are given up before a lease is over")
		}
		time.Sleep(time.Nanosecond)
		if !r.Spent(lease, true) {
			t.Error("the session goes on after a lease")
		}
	})
}

// The time of a refusal counts from the first, however often it is repeated, and for each request alone.
func TestRefusals_CountFromTheFirstOfEachRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r enginekit.Refusals[string]
		r.Refused("a", errFirst)
		time.Sleep(lease / 2)
		r.Refused("b", errFirst)
		r.Refused("a", errLater)
		if err := r.Err(); !errors.Is(err, errLater) {
			t.Errorf("it says %v, want what was refused last", err)
		}
		time.Sleep(lease / 2)
		if !r.Spent(lease, true) {
			t.Error("a repeated refusal counts anew")
		}
		if r.Settled("a") {
			t.Error("one is left, and the session grants")
		}
		if r.Err() == nil || r.Spent(lease, true) {
			t.Error("the time of one refusal counts for another")
		}
		time.Sleep(lease / 2)
		if !r.Spent(lease, true) {
			t.Error("the second refusal does not count")
		}
	})
}

// A session whose server takes all back goes on as if nothing had been, and a later refusal begins anew.
func TestRefusals_ThatAreSettled_LeaveTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r enginekit.Refusals[string]
		r.Refused("a", errFirst)
		r.Refused("b", errFirst)
		again := r.Settled("a")
		if again || r.Settled("a") || r.Settled("c") {
			t.Error("one is left, and the session grants")
		}
		if !r.Settled("b") {
			t.Error("nobody is told that the session grants again")
		}
		if r.Settled("b") || r.Err() != nil || r.Spent(lease, false) {
			t.Error("a session whose releases were heard out is given up")
		}
		time.Sleep(lease)
		r.Refused("a", errFirst)
		if r.Spent(lease, true) {
			t.Error("an earlier refusal counts")
		}
	})
}
