package enginekit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTombstones_RememberTheRequestsThatEndedLast_AndHow(t *testing.T) {
	var s Tombstones[int, string]
	if _, ended := s.Epitaph(0); s.Has(0) || ended {
		t.Error("the zero value is not empty")
	}
	for id := range 3*endedKept + 7 {
		s.Bury(id, "first")
		s.Bury(id, "second") // keeps the first epitaph, and takes no second place in the ring
		if how, ended := s.Epitaph(id); !ended || how != "first" || !s.Has(id) {
			t.Fatalf("%d: got %q, %v", id, how, ended)
		}
		if oldest := id - endedKept + 1; oldest > 0 && (!s.Has(oldest) || s.Has(oldest-1)) {
			t.Fatalf("after %d: the oldest that is remembered is not %d", id, oldest)
		}
	}
	if len(s.ended) != endedKept || len(s.ring) != endedKept {
		t.Errorf("%d and %d are kept, want %d", len(s.ended), len(s.ring), endedKept)
	}
}

func TestTombstones_RememberTheUndoneUntilTheirTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Tombstones[int, struct{}]
		for id := range 5 * endedKept {
			s.BuryUntil(id, time.Now().Add(time.Minute))
		}
		time.Sleep(time.Minute - time.Nanosecond)
		for id := range 5 * endedKept {
			if _, ended := s.Epitaph(id); !s.Has(id) || ended {
				t.Fatalf("%d is forgotten before its time, or counts as ended", id)
			}
		}
		s.BuryUntil(0, time.Now().Add(time.Minute))
		time.Sleep(time.Nanosecond)
		if !s.Has(0) || s.Has(1) {
			t.Error("what was undone once more is forgotten, or what is over is not")
		}
	})
}

func TestTombstones_KeepNoUndoneRequestForLongAfterItsTime(t *testing.T) {
	var s Tombstones[int, struct{}]
	s.BuryUntil(-1, time.Now().Add(time.Hour))
	for id := range 5 * endedKept {
		s.BuryUntil(id, time.Now().Add(-time.Second))
	}
	if !s.Has(-1) || len(s.undone) > 2*sweepLeast+3 {
		t.Errorf("%d undone requests are kept", len(s.undone))
	}
}

func BenchmarkTombstones(b *testing.B) {
	var s Tombstones[string, struct{}]
	ids := make([]string, 4096)
	for i := range ids {
		ids[i] = time.Duration(i).String() + "-0123456789abcdef0123"
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := ids[i%len(ids)]
		if !s.Has(id) {
			s.Bury(id, struct{}{})
		}
	}
}
