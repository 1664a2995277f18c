package conn

import (
	"strings"
	"testing"

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
		"", "a", "123456789", "foo{bar}baz", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "foo{bar", "foo}bar{", "{",
		"{}", "}{a}", "interlock:mutex:锁{订单}:1", "\x00\xff", strings.Repeat("x", 600),
	} {
		want, err := c.Do(t.Context(), "CLUSTER", "KEYSLOT", key)
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(SlotOf(key)); got != want {
			t.Errorf("the slot of %q is %d, the server says %v", key, got, want)
		}
	}
}

// Which of them has which is pinned beside wire.md.
func TestTag_IsOnePerSlot(t *testing.T) {
	seen := make(map[string]bool, Slots)
	for slot := range Slots {
		tag := Tag(uint16(slot))
		if tag == "" || seen[tag] || SlotOf("{"+tag+"}") != uint16(slot) {
			t.Fatalf("slot %d has the tag %q", slot, tag)
		}
		seen[tag] = true
	}
	for n, want := range map[int]string{0: "a", 25: "z", 26: "ab", 27: "bb", 51: "zb", 52: "ac", 676: "aab"} {
		if got := tagNumber(n); got != want {
			t.Errorf("the tag number %d is %q, want %q", n, got, want)
		}
	}
}
