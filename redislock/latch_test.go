package redislock

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// What a latch remembers of each count-down would be removed in one step at zero: of 300,000 that took the server 0.1
// s.
func TestLatch_KeepsNoIDs(t *testing.T) {
	node := servers.RedisServer(t, nil)
	d := open(t, soloOption(node.Addr()), nil)
	key := driver.Key{Kind: driver.KindLatch, Name: "big"}
	if ok, err := d.SetLatch(t.Context(), &driver.LatchCall{Key: key, ID: "set", Count: 100}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for i := range 50 {
		for range 2 { // and each is counted once, as long as a copy may be under way
			left, err := d.CountDown(t.Context(), &driver.LatchCall{Key: key, ID: fmt.Sprint("down-", i)})
			if err != nil || left != int64(99-i) {
				t.Fatalf("count-down %d left %d: %v", i, left, err)
			}
		}
	}
	fields, err := node.Do(t.Context(), "HLEN", "interlock:latch:big")
	if err != nil || fields != int64(3) {
		t.Errorf("after 50 count-downs the latch has %v fields: %v", fields, err)
	}
}
