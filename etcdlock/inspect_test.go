package etcdlock

import (
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// One key that cannot be read must not hide the locks behind it. Nobody can tell who has the lock that it belongs to.
func TestLocks_WithKeysThatCannotBeRead_MarkTheirLocksAndGoOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	d := s.opens(s.node.Addr(), time.Minute)
	for _, name := range []string{"a", "b", "c"} {
		s.take(s.ask(name), d)
	}
	const secret = "4711"
	unread := map[string]string{"b": "{", "later": `{"v":2}`, "other": `{"v":` + secret + `.5}`}
	for name, value := range unread {
		s.forges(d, d.names.queuePrefix(driver.Key{Kind: driver.KindMutex, Name: name})+"foreign", value)
	}
	// These stand in no lock's queue.
	for _, key := range []string{"mutex/b", "mutex/b%zz/key", "mutex//key"} {
		s.forges(d, d.names.prefix+key, "something")
	}
	listed := 0
	for info, err := range d.Locks(s.ctx(), "") {
		if err != nil {
			t.Fatalf("the listing ends with %v", err)
		}
		listed++
		_, marked := unread[info.Name]
		if held := len(info.Holders) == 1; marked != (info.Unreadable != "") || held == marked {
			t.Errorf("listed as %+v, want it marked: %v", info, marked)
		}
		if strings.Contains(info.Unreadable, secret) {
			t.Errorf("it shows what is stored: %s", info.Unreadable)
		}
	}
	if want := len(unread) + 2; listed != want {
		t.Errorf("%d locks are listed, want %d", listed, want)
	}
	// A look has one lock to tell of, and must not take it for free.
	for name := range unread {
		info, err := d.Look(s.ctx(), driver.Key{Kind: driver.KindMutex, Name: name})
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("a look says %+v, %v", info, err)
		}
	}
}
