package memlock

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// A latch that counts for long must not remember each count-down for as long.
func TestLatch_KeepsNothingOfOldCountDowns(t *testing.T) {
	const downs = 100_000
	d := New(nil)
	defer d.Close()
	key := driver.Key{Kind: driver.KindLatch, Name: "big"}
	set := &driver.LatchCall{Key: key, ID: "set", Count: 2 * downs, Horizon: 1}
	if ok, err := d.SetLatch(t.Context(), set); err != nil || !ok {
		t.Fatal(ok, err)
	}
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := inUse()
	for i := range downs {
		// The horizon of each is over when the next comes.
		c := &driver.LatchCall{Key: key, ID: fmt.Sprint("down-", i), Horizon: 1}
		if left, err := d.CountDown(t.Context(), c); err != nil || left != int64(2*downs-i-1) {
			t.Fatal(left, err)
		}
	}
	if grown := int64(inUse()) - int64(before); grown > 10*downs {
		t.Errorf("%d count-downs take %d bytes", downs, grown)
	}
}
