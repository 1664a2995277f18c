package target

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// What befalls a part of a Cluster befalls one that has a lock; without any lock it is some part.
func TestLockedSlot_IsOneOfALockThatSomebodyHas(t *testing.T) {
	c := servers.RedisCluster(t, 3, 1, nil)
	dice := rand.New(rand.NewPCG(1, 1))
	if slot, err := lockedSlot(t.Context(), c, dice); err != nil || slot < 0 || slot >= slots {
		t.Errorf("without a lock it is slot %d, %v", slot, err)
	}
	locks := openWith(t, "redis+cluster://"+strings.Join(c.Addrs(), ","), time.Minute)
	held := map[int]string{}
	for _, name := range []string{"x", "y"} {
		if _, err := locks.Lock(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		held[c.Slot("interlock:mutex:"+name)] = name
	}
	drawn := map[string]bool{}
	for range 20 {
		slot, err := lockedSlot(t.Context(), c, dice)
		if err != nil || held[slot] == "" {
			t.Fatalf("it is slot %d, %v, and of locks are %v", slot, err, held)
		}
		drawn[held[slot]] = true
	}
	if len(drawn) != 2 {
		t.Errorf("of two locks only %v is drawn", drawn)
	}
}
