package redlock

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What one node refuses is a vote that is missing, and what a majority refuses is refused.
func TestAcquire_ThatNodesRefuse_GoesOnWithAMajority_AndElseSaysWhy(t *testing.T) {
	nodes := startNodes(t, 3)
	d, err := driver.DefaultMux.Open(t.Context(), "redlock://"+strings.Join(addrs(nodes), ",")+"?check=none",
		driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	try := func(id string) error {
		r := &driver.Request{
			Key: driver.Key{Kind: driver.KindMutex, Name: id}, ID: id, Owner: "o", Lease: 20 * time.Second, Tokens: 1,
			Try: true,
		}
		_, err := d.Acquire(t.Context(), r)
		return err
	}
	for i := range nodes {
		if _, err := nodes[i].Do(t.Context(), "CONFIG", "SET", "maxmemory", "1"); err != nil {
			t.Fatal(err)
		}
		err := try(string(rune('a' + i)))
		if i == 0 {
			if err != nil {
				t.Errorf("with one node of three that refuses: %v", err)
			}
			continue
		}
		said := driver.Refusal(err)
		if said == nil || !said.Open || !strings.Contains(said.Hint, "maxmemory") ||
			!strings.Contains(err.Error(), "OOM") {
			t.Errorf("with %d nodes of three that refuse: %v, want a refusal", i+1, err)
		}
	}
}
