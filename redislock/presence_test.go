package redislock

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// What all who wait ask of the server together stays the same from some number on.
func TestPresence_OfMany_AsksTheMoreRarelyTheMoreThereAre(t *testing.T) {
	for _, tc := range []struct {
		waits, others, length int
		least, most           time.Duration
	}{
		{waits: 1, others: 1, length: 1, least: heartbeatEvery, most: heartbeatEvery},
		{waits: 50, others: 1, length: 50, least: heartbeatEvery, most: heartbeatEvery},
		{waits: 1_000, others: 1, length: 1_000, least: 18 * time.Second, most: 20 * time.Second},
		{waits: 1, others: 1_000, length: 1, least: 18 * time.Second, most: 20 * time.Second},
		{waits: 1, others: 1, length: 1_000, least: 18 * time.Second, most: 20 * time.Second},
		{waits: 1_000_000, others: 1, length: 1, least: mostPause * 9 / 10, most: mostPause},
	} {
		p := presence{waits: tc.waits, others: tc.others}
		if got := p.pause(heartbeatEvery, tc.length); got < tc.least || got > tc.most {
			t.Errorf("%+v: it pauses for %v", tc, got)
		}
	}
}

// A sign of life lasts for twice as long as was usual when it was given. If the answer is that many have come
// meanwhile, the next follows as soon as it would have without them; that one may last.
func TestPresence_AmongManyWhoHaveJustCome_SpeaksInTimeForWhatItSaid(t *testing.T) {
	var p presence
	said := p.every()
	if next := p.answered(5_000, said, nil); next > said {
		t.Errorf("what it said lasts for %v, and it speaks again after %v", 2*said, next)
	}
	said = p.every()
	if next := p.answered(5_000, said, nil); next != longestHeartbeat {
		t.Errorf("then it speaks after %v", next)
	}
	for _, said := range []time.Duration{heartbeatEvery, longestHeartbeat} { // which a call that fails may take half of
		if next := p.answered(0, said, context.DeadlineExceeded); said+said/2+next >= 2*said {
			t.Errorf("after one that failed it speaks after %v, of %v", next, said)
		}
	}
}

// However many wait, some of each process go and see whether a holder has died; where few wait, all do.
func TestPresence_OfMany_HasSomeThatLookForDeadHolders(t *testing.T) {
	const draws = 100_000
	for _, tc := range []struct{ waits, others, length, least, most int }{
		{waits: 1, others: 0, least: draws, most: draws},
		{waits: 5, others: 100, least: draws, most: draws},
		{waits: 100, others: 100, least: draws / 25, most: draws / 16},
		{waits: 1, others: 0, length: 10_000, least: draws / 25, most: draws / 16},
		{waits: 100_000, others: 1, least: draws / 400, most: draws / 100},
	} {
		p, n := presence{waits: tc.waits, others: tc.others}, 0
		for range draws {
			if p.mustScout(tc.length, rand.Float64()) {
				n++
			}
		}
		if n < tc.least || n > tc.most {
			t.Errorf("%+v: %d of %d look", tc, n, draws)
		}
	}
}
