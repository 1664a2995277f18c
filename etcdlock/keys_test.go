package etcdlock

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

func FuzzEscape_IsReversible_AndKeepsPrefixes(f *testing.F) {
	for _, seed := range []string{"", "a", "a/b", "100%", "%2F", "\x00\x1f\x7f", "锁", "\xff", "a\nb"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, name, more string) {
		text := escape(name)
		if strings.ContainsAny(text, "/\x00\n\x7f") {
			t.Errorf("%q becomes %q", name, text)
		}
		if back, err := unescape(text); err != nil || back != name {
			t.Errorf("%q becomes %q, and that %q, %v", name, text, back, err)
		}
		if !strings.HasPrefix(escape(name+more), text) {
			t.Errorf("%q begins with %q, but %q not with %q", name+more, name, escape(name+more), text)
		}
		if back, err := unescape(name); err == nil && escape(back) != name {
			t.Errorf("%q and %q both mean %q", name, escape(back), back)
		}
	})
}

func TestNames_AreReadAsTheyAreWritten(t *testing.T) {
	n := names{"app/"}
	key := driver.Key{Kind: driver.KindMutex, Name: "a/b%"}
	place := n.queueKey(&driver.Request{Key: key}, 0x1f, 3)
	if place != "app/mutex/a%2Fb%25/1f-3" {
		t.Errorf("the place is %q", place)
	}
	if name, err := n.parse(driver.KindMutex, place); err != nil || name != key.Name {
		t.Errorf("%q is read as %q, %v", place, name, err)
	}
	for _, other := range []string{
		"app/rw/a/1f-3", "app/mutex/a", "app/mutex/a%zz/1f-3", "app/mutex//1f-3", "mutex/a/1f-3",
	} {
		if name, err := n.parse(driver.KindMutex, other); err == nil {
			t.Errorf("%q is read as %q", other, name)
		}
	}
	if got := n.tomb(key, "i/d"); got != "app/gone/mutex/a%2Fb%25/i%2Fd" {
		t.Errorf("the tomb is %q", got)
	}
	notice := n.notice(0x1f, 77)
	if revision, is := n.noticed(0x1f, notice); !is || revision != 77 || notice != "app/session/1f/broken/77" {
		t.Errorf("%q is read as %d, %v", notice, revision, is)
	}
	if _, is := n.noticed(0x1f, n.alive(0x1f)); is {
		t.Errorf("%q is read as a notice", n.alive(0x1f))
	}
}

// Keys are used again, but none of which a copy of a request may be under way.
func TestSlots_AreUsedAgain_UnlessInDoubt(t *testing.T) {
	d := &Driver{names: names{"p/"}}
	s := &session{d: d, id: 1, slots: make(map[driver.Key]*slots)}
	entryOf := func() *entry {
		e := &entry{d: d, r: &driver.Request{Key: driver.Key{Kind: driver.KindMutex, Name: "a"}}}
		s.occupy(e)
		return e
	}
	one, two := entryOf(), entryOf()
	if one.queueKey != "p/mutex/a/1-0" || two.queueKey != "p/mutex/a/1-1" {
		t.Errorf("the places are %q and %q", one.queueKey, two.queueKey)
	}
	one.vacate()
	one.vacate() // once is enough
	if again := entryOf(); again.queueKey != "p/mutex/a/1-0" {
		t.Errorf("after the first was given back there is %q", again.queueKey)
	}
	two.open = 1
	two.vacate()
	if third := entryOf(); third.queueKey != "p/mutex/a/1-2" {
		t.Errorf("with the second in doubt there is %q", third.queueKey)
	}
}

func kvOf(key, value string) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: 7}
}
