package redislock

import (
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestSlotOf_IsTheServersOwn(t *testing.T) {
	s := servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"cluster-enabled": "yes"}})
	c, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, key := range []string{
		"", "a", "123456789", "foo{bar}baz", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "foo{bar", "foo}bar{", "{", "{}", "}{a}",
		"interlock:mutex:锁{订单}:1", "\x00\xff", strings.Repeat("x", 600),
	} {
		want, err := c.Do(t.Context(), "CLUSTER", "KEYSLOT", key)
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(slotOf(key)); got != want {
			t.Errorf("the slot of %q is %d, the server says %v", key, got, want)
		}
	}
}

// Another implementation must find the same tags, so they can never change.
func TestTags_AreOnePerSlotAndPinned(t *testing.T) {
	seen := make(map[string]bool, slots)
	for slot, tag := range tags() {
		if tag == "" || seen[tag] || crc16(tag)%slots != uint16(slot) {
			t.Fatalf("slot %d has the tag %q", slot, tag)
		}
		seen[tag] = true
	}
	for slot, tag := range pinnedTags(t) {
		if got := tags()[slot]; got != tag {
			t.Errorf("slot %d has the tag %q, wire.md says %q", slot, got, tag)
		}
	}
	for n, want := range map[int]string{0: "a", 25: "z", 26: "ab", 27: "bb", 51: "zb", 52: "ac", 676: "aab"} {
		if got := tagNumber(n); got != want {
			t.Errorf("the tag number %d is %q, want %q", n, got, want)
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
			for _, other := range []string{key, n.floor(slot), n.tomb(slot, "id"), n.tomb(slot, ""), n.shard("proc", slot)} {
				if slotOf(other) != slot {
					t.Errorf("%q is in slot %d, the lock %q in %d", other, slotOf(other), key, slot)
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
		if slotOf(key) != slot || slotOf(n.floor(slot)) != slot || slotOf(n.tomb(slot, "id")) != slot {
			t.Errorf("%q: %d, %d, %d", key, slot, slotOf(n.floor(slot)), slotOf(n.tomb(slot, "id")))
		}
	})
}
