package zklock

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
)

// Who looks at a queue sees what was in it before it looked, although others are looking already, and share what they
// see.
func TestView_ThatManyShare_IsNeverOlderThanWhoAsksForIt(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	a := newAdmin(t, n.Addr())
	keeper := request("lock") // so that the lock's node stays
	take(t, d, keeper)
	d.mu.Lock()
	l := d.session.link
	d.mu.Unlock()
	lock := root + "/mutex/lock"
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			for try := range 25 {
				path, err := a.Create(fmt.Sprintf("%s/wword%dx%d-", lock, who, try), nil,
					zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
				if err != nil {
					t.Error(err)
					return
				}
				v, err := l.view(bounded(t), lock)
				if err != nil {
					t.Error(err)
					return
				}
				name := strings.TrimPrefix(path, lock+"/")
				if !slices.ContainsFunc(v.places, func(p queuePlace) bool { return p.name == name }) {
					t.Errorf("%s was made before the queue was looked at, and is not seen in it", name)
				}
			}
		})
	}
	all.Wait()
	soon(t, "nobody to look any more", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(l.viewings) == 0
	})
	give(t, d, keeper)
}
