package redislock

import (
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// Another implementation must find the same tags, so they can never change.
func TestTags_ArePinned(t *testing.T) {
	for slot, tag := range pinnedTags(t) {
		if got := conn.Tag(uint16(slot)); got != tag {
			t.Errorf("slot %d has the tag %q, wire.md says %q", slot, got, tag)
		}
	}
}

// pinnedTags reads the table of wire.md that has the tags of some slots.
func pinnedTags(t *testing.T) map[int]string {
	t.Helper()
	pinned := make(map[int]string)
	for _, row := range wireTable(t, "slot") {
		slot, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		pinned[slot] = row[1]
	}
	if len(pinned) < 4 {
		t.Fatalf("wire.md pins only %v", pinned)
	}
	return pinned
}

func TestNames_OfOneLock_AreInOneSlot(t *testing.T) {
	n := names{"app:"}
	for _, name := range []string{"a", "stock:{42}", "{}", "a{", "}", "{a}{b}", "锁"} {
		for _, kind := range kinds {
			key, slot := n.lock(driver.Key{Kind: kind, Name: name})
			if key != "app:"+string(kind)+":"+name {
				t.Errorf("the key of %s %q is %q", kind, name, key)
			}
			for _, other := range []string{
				key, n.floor(slot), n.tomb(slot, "id"), n.tomb(slot, ""), n.shard("proc", slot),
			} {
				if conn.SlotOf(other) != slot {
					t.Errorf("%q is in slot %d, the lock %q in %d", other, conn.SlotOf(other), key, slot)
				}
			}
		}
	}
	if got := n.channel("proc"); got != "app:push:proc" {
		t.Errorf("the channel is %q", got)
	}
}

func FuzzNames_OfOneLock_AreInOneSlot(f *testing.F) {
	for _, seed := range []string{"a", "{", "{}", "{a}", "a{b}c{d}", "}{"} {
		f.Add(seed)
	}
	n := names{defaultPrefix}
	f.Fuzz(func(t *testing.T, name string) {
		key, slot := n.lock(driver.Key{Kind: driver.KindMutex, Name: name})
		if conn.SlotOf(key) != slot || conn.SlotOf(n.floor(slot)) != slot || conn.SlotOf(n.tomb(slot, "id")) != slot {
			t.Errorf("%q: %d, %d, %d", key, slot, conn.SlotOf(n.floor(slot)), conn.SlotOf(n.tomb(slot, "id")))
		}
	})
}
