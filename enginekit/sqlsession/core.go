package sqlsession

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// Core is what a driver consists of beside its dialect. It is safe for concurrent use and must not be copied.
type Core struct {
	config  Config
	dialect Dialect
	born    time.Time // where instants are counted from

	base  context.Context //nolint:containedctx // ended by Close: what opens connections ends with it
	stop  context.CancelFunc
	work  sync.WaitGroup // every goroutine of the driver
	knock chan struct{}  // has one place; somebody wants a hold broken

	mu      sync.Mutex        // guards what follows; nothing blocks under it
	closed  bool              // nothing is asked for any more
	ended   bool              // nothing is done any more
	entries map[string]*Entry // by request ID
	places  map[LockID]*place
	hints   map[LockID]time.Duration // until when a lock is waited for without being tried for
	gone    enginekit.Tombstones[string, epitaph]
	shared  []*Conn
	dialing bool  // a shared connection is being opened
	wanting []Job // what waits for a shared connection
	pool    pool  // of connections that wait
	all     map[*Conn]struct{}
	polling int           // waits for which the pool has no connection
	looked  time.Duration // when breaks were last asked for
	pruned  time.Duration // when old rows were last looked for
	grants  int           // since then; of a new driver, as if there had been some before
}

// New returns a core without connections. Open makes it one that works; Close closes it in any case.
func New(config Config, dialect Dialect) *Core {
	d := &Core{
		config: config, dialect: dialect, born: time.Now().Add(-time.Second), knock: make(chan struct{}, 1),
		entries: make(map[string]*Entry), places: make(map[LockID]*place), hints: make(map[LockID]time.Duration),
		all: make(map[*Conn]struct{}), pruned: -pruneRest, grants: rand.N(pruneGrants),
	}
	d.pool.freed, d.pool.dials = make(chan struct{}, 1), make(chan struct{}, mostDials)
	d.base, d.stop = context.WithCancel(context.Background())
	return d
}

// Share makes c, which was adopted, one of the shared connections.
func (d *Core) Share(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared = append(d.shared, c)
}

// Begin looks after the connections from now on.
func (d *Core) Begin() { d.spawn(d.beat) } // ends with Close

// Connections is how many there are.
func (d *Core) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// Clock is the monotonic time since the driver was born. It is never 0.
func (d *Core) Clock() time.Duration { return time.Since(d.born) }

// spawn runs f in a goroutine that Close waits for, unless the driver has ended.
func (d *Core) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	d.work.Go(f)
	return true
}

// Adopt makes c one of the driver's connections, unless it has ended, or beside refuses it next to one that is there.
func (d *Core) Adopt(c *Conn, beside func(other *Conn) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return driver.ErrClosed
	}
	for other := range d.all {
		if beside == nil || !other.GoesOn() {
			continue
		}
		if err := beside(other); err != nil {
			return err
		}
	}
	d.all[c] = struct{}{}
	d.work.Go(c.loop) // ends with the connection, which Close ends
	return nil
}

// CloseTime bounds the cancelling of waits in Close.
const CloseTime = time.Second

// Close ends all waits with driver.ErrClosed, in the server as well, and closes the connections, which frees what they
// hold. It takes little more than a second, also when the server hangs.
func (d *Core) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	var waits []*Entry
	for _, e := range d.entries {
		if e.phase == waiting {
			waits = append(waits, e)
		}
		d.cancel(e, driver.ErrClosed)
	}
	d.mu.Unlock()
	patience := time.NewTimer(CloseTime)
	defer patience.Stop()
	for _, e := range waits { // their goroutines have them interrupted in the server, over shared connections
		select {
		case <-e.over:
			continue
		case <-patience.C:
		}
		break
	}
	d.stop()
	d.endConnections()
	d.work.Wait()
	return nil
}

// endConnections closes all that are left: in the usual way what has nothing to do, and at once what waits for the server.
func (d *Core) endConnections() {
	d.mu.Lock()
	d.ended = true
	all := make([]*Conn, 0, len(d.all))
	for c := range d.all {
		all = append(all, c)
	}
	wanting := d.wanting
	d.wanting = nil
	d.mu.Unlock()
	for _, j := range wanting {
		j.Dead(driver.ErrClosed)
	}
	for _, c := range all {
		c.end()
	}
	patience := time.NewTimer(goodbye)
	defer patience.Stop()
	for _, c := range all {
		select {
		case <-c.done:
			continue
		case <-patience.C:
			patience.Reset(0) // for the others as well
		}
		c.Kill()
	}
}

// Crash ends the connections without a word, as the end of the process would. It is for tests.
func (d *Core) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true // so that nothing is buried, and no connection opened
	d.stop()
	for c := range d.all {
		_ = c.raw.Close()
	}
}
