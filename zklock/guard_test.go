package zklock

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// An operator who takes the right to read from one hold's node must not keep other holds from being watched.
func TestGuard_ThatIsRefusedForOneHold_WatchesTheOthers(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a, d := newAdmin(t, n.Addr()), open(t, []string{n.Addr()}, &Options{Root: root})
	var all []*driver.Request
	var holds []*entry
	for _, name := range []string{"first", "second"} {
		r := request(name)
		take(t, d, r)
		all = append(all, r)
		d.mu.Lock()
		holds = append(holds, d.entries[r.ID])
		d.mu.Unlock()
	}
	isWatched := func(e *entry) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		w := e.s.watches[e.path]
		return w != nil && w.armed && w.hold == e
	}
	soon(t, "both to be watched", func() bool { return isWatched(holds[0]) && isWatched(holds[1]) })
	if _, err := a.SetACL(holds[0].path, zk.WorldACL(zk.PermAll&^zk.PermRead), -1); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	l := d.session.link
	for _, e := range holds { // as if they were young again
		delete(e.s.watches, e.path)
	}
	d.mu.Unlock()
	l.guardAll(holds, nil)
	if isWatched(holds[0]) || !isWatched(holds[1]) {
		t.Errorf("watched: %v, %v", isWatched(holds[0]), isWatched(holds[1]))
	}
	for _, r := range all {
		give(t, d, r)
	}
}
