package memlock

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestMint(t *testing.T) {
	now := uint64(epoch.UnixMicro())
	for _, tc := range []struct {
		name  string
		now   time.Time
		last  uint64
		want  int
		first uint64
		n     int
	}{
		{"TheClock_WhenItIsAhead", epoch, 7, 1, now, 1},
		{"ABlock_WhenTheClockIsAhead", epoch, now - 1, 8, now, 8},
		{"One_WhenTheClockStandsStill", epoch, now, 8, now + 1, 1},
		{"One_WhenTheClockIsBehind", epoch, now + 500, 8, now + 501, 1},
		{"AtLeastOne_WhenNoneIsAsked", epoch, 7, 0, now, 1},
		{"NoMoreThanABlockMayHave", epoch, 7, math.MaxInt, now, maxBlock},
		{"One_BeforeTheEpoch", time.Unix(-1000, 0), 0, 8, 1, 1},
		{"Below2To63_AtTheEndOfTime", time.UnixMicro(math.MaxInt64), 7, math.MaxInt, maxClock, maxBlock},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := mint(tc.now, tc.last, tc.want)
			if b.first != tc.first || b.n != tc.n {
				t.Errorf("got %d tokens from %d, want %d from %d", b.n, b.first, tc.n, tc.first)
			}
			if b.end() >= 1<<63 {
				t.Errorf("the last token is %d, want less than 2^63", b.end())
			}
		})
	}
}

func TestTokens_GrowThoughTheLockWasFreeAndTheClockWentBack(t *testing.T) {
	s := newState(0)
	last := uint64(0)
	for i, back := range []time.Duration{0, 0, time.Second, 0, time.Hour, -time.Hour} {
		now := epoch.Add(-back)
		id := fmt.Sprint(i)
		rec, err := s.acquire(now, &driver.Request{Key: key, ID: id, Lease: time.Minute, Tokens: 16})
		if err != nil {
			t.Fatal(err)
		}
		if rec.block.first <= last {
			t.Fatalf("grant %d has token %d, want more than %d, the end of the block before", i, rec.block.first, last)
		}
		last = rec.block.end()
		if err := s.release(now, &driver.Release{Key: key, ID: id}); err != nil {
			t.Fatal(err)
		}
		if len(s.locks) != 0 {
			t.Fatal("a free lock is still remembered")
		}
	}
}

func TestTokens_OfASharedLock_GrowWithEachGrant(t *testing.T) {
	st := play(t, `
		R a: granted
		R b: granted
		R c: granted`)
	last := uint64(0)
	for _, id := range []string{"a", "b", "c"} {
		b := st.state.records[ref{key, id}].block
		if b.first <= last || b.nonce != id {
			t.Errorf("%s has %+v after token %d", id, b, last)
		}
		last = b.end()
	}
}
