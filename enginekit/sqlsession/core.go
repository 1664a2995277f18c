package sqlsession

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// Core is what a driver consists of besides its dialect. New makes one. It is safe for concurrent use and must not be
// copied.
type Core struct {
	config  Config
	dialect Dialect
	born    time.Time // where instants are counted from

	base  context.Context //nolint:containedctx // ended by Close: what opens connections ends with it
	stop  context.CancelFunc
	work  sync.WaitGroup // every goroutine of the driver
	knock chan struct{}  // has one place; somebody wants a hold broken

	mu         sync.Mutex        // guards what follows; nothing blocks under it
	closed     bool              // nothing is asked for any more
	ended      bool              // nothing is done any more
	entries    map[string]*Entry // by request ID
	lockStates map[LockID]*lockState
	hints      map[LockID]time.Duration // until when a lock is waited for without being tried for
	gone       enginekit.Tombstones[string, epitaph]
	shared     []*Conn
	dialing    bool  // a shared connection is being opened
	wanting    []Job // what waits for a shared connection
	pool       pool  // of connections that wait
	all        map[*Conn]struct{}
	polling    int           // waits for which the pool has no connection
	looked     time.Duration // when breaks were last asked for
	pruned     time.Duration // when old rows were last looked for
	grants     int           // since then; of a new driver, as if there had been some before
}

// New returns a core without connections. With a connection by [Core.AddShared], and after [Core.Start], it works;
// Close must be called in any case. All of config must be set.
func New(config Config, dialect Dialect) *Core {
	d := &Core{
		config: config, dialect: dialect, born: time.Now().Add(-time.Second), knock: make(chan struct{}, 1),
		entries: make(map[string]*Entry), lockStates: make(map[LockID]*lockState),
		hints: make(map[LockID]time.Duration),
		all:   make(map[*Conn]struct{}), pruned: -pruneCooldown, grants: rand.N(pruneGrants),
	}
	d.pool.freed, d.pool.dials = make(chan struct{}, 1), make(chan struct{}, mostDials)
	//nolint:forbidigo // it lasts until Close, whatever opened it
	d.base, d.stop = context.WithCancel(context.Background())
	return d
}

// AddShared makes c, which [Dialect].Dial has opened and the core adopted, one of the shared connections. An engine
// does so with the first one; the core opens the others when they are needed.
func (d *Core) AddShared(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared = append(d.shared, c)
}

// Start begins to look after the connections: signs of life, late answers, breaks, old rows. It is called once, after
// the engine knows that locks can be kept. The goroutine ends with Close.
func (d *Core) Start() { d.spawn(d.heartbeat) } // ends with Close

// Connections returns how many connections there are, of both sorts.
func (d *Core) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// Clock returns the monotonic time since a moment before New. It is never 0.
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

// Adopt makes c one of the core's connections and starts its goroutine. It returns driver.ErrClosed after Close, and
// otherwise the first error of beside, which is asked about each connection that is there and may be nil: a session of
// another server must not stand beside those of the first. After an error c is still the caller's, who calls
// [Conn.Discard]. beside runs under the core's mutex, and must not call the core.
func (d *Core) Adopt(c *Conn, beside func(other *Conn) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return driver.ErrClosed
	}
	for other := range d.all {
		if beside == nil || !other.isOpen() {
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

// closeTime bounds how long Close cancels waits.
const closeTime = time.Second

// Close ends all waits with driver.ErrClosed, in the server as well, and closes the connections, which frees what they
// hold. It takes little more than a second, also when the server hangs. Its error is always nil; a second call does
// nothing.
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
	patience := time.NewTimer(closeTime)
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

// endConnections closes all that are left: in the usual way what has nothing to do, and at once what waits for the
// server.
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

// Crash ends the connections without a word, as the end of the process would. It is for tests, for instance as
// drivertest.Harness.Crash; Close must be called all the same.
func (d *Core) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true // so that nothing is buried, and no connection opened
	d.stop()
	for c := range d.all {
		_ = c.raw.Close()
	}
}
