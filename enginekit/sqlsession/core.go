// The Core: its state, its start and its end. entry.go begins a request, heartbeat.go looks after connections, doc.go
// has what an engine supplies.

package sqlsession

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// Core is what a driver consists of besides its dialect. [New] makes one. It is safe for concurrent use and must not be
// copied.
type Core struct {
	config  Config
	dialect Dialect
	born    time.Time // all instants that are kept as durations count from here

	base  context.Context //nolint:containedctx // ended by Close: what opens connections ends with it
	stop  context.CancelFunc
	work  sync.WaitGroup // every goroutine of the driver
	knock chan struct{}  // buffer of one: somebody wants breaks to be read

	reading atomic.Bool // breaks are being read

	mu         sync.Mutex        // guards what follows; nothing blocks under it
	closed     bool              // no request is accepted any more
	ended      bool              // no goroutine is started any more
	entries    map[string]*Entry // by request ID
	lockStates map[LockID]*lockState
	hints      map[LockID]time.Duration              // until when a lock is waited for without a try
	gone       enginekit.Tombstones[string, epitaph] // requests that are over
	shared     []*Conn                               // those that hold what was free, while they may be used
	dialing    bool                                  // a shared connection is being opened
	wanting    []Job                                 // jobs that wait for a shared connection
	pool       pool                                  // connections that wait
	all        map[*Conn]struct{}                    // every connection that was adopted and has not ended
	polling    int                                   // how many waits have no connection of their own
	looked     time.Duration                         // when breaks were last asked for
	pruned     time.Duration                         // when old rows were last looked for
	grants     int                                   // since then; a new core begins at random, see pruneGrants
}

// New returns a core without connections. It works with a connection from [Core.AddShared], and after [Core.Start].
// Close must be called in any case. All fields of config must be set.
func New(config Config, dialect Dialect) *Core {
	d := &Core{
		// born lies a second back, so that no instant since it is 0, which means "never" in several fields.
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

// AddShared makes c one of the shared connections. [Dialect].Dial has opened it and the core has adopted it. An engine
// does so with the first connection; the core opens the others when they are needed.
func (d *Core) AddShared(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared = append(d.shared, c)
}

// Start begins to look after the connections: signs of life, late answers, breaks, old rows. Call it once, when the
// engine knows that locks can be kept. The goroutine ends with Close.
func (d *Core) Start() { d.spawn(d.heartbeat) }

// Connections returns how many connections there are, of both sorts.
func (d *Core) Connections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all)
}

// Clock returns the monotonic time since a moment before New. It is never 0.
func (d *Core) Clock() time.Duration { return time.Since(d.born) }

// spawn runs f in a goroutine that Close waits for. If the core has ended it returns false and does not run f.
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
// otherwise an error of beside. That is asked about each open connection and may be nil; it is for engines in which a
// session of another server must not stand beside those of the first. After an error c still belongs to the caller, who
// calls [Conn.Discard]. beside runs under the core's mutex and must not call the core.
//
// After a failover the others may belong to a server that has vanished without a word. So they are asked, and a
// connection whose server owes an answer for two seconds is not in the way.
func (d *Core) Adopt(c *Conn, beside func(other *Conn) error) error {
	others, err := d.adopt(c, beside)
	for _, other := range others {
		other.submitPing()
	}
	return err
}

// adopt is Adopt without a question to the others, which it returns if they are in the way.
func (d *Core) adopt(c *Conn, beside func(other *Conn) error) (others []*Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return nil, driver.ErrClosed
	}
	now := d.Clock()
	for other := range d.all {
		if beside == nil || !other.isOpen() || other.isSuspect(now) {
			continue
		}
		if refused := beside(other); refused != nil {
			err = refused
			if !other.pinging.Load() && other.load() == 0 {
				others = append(others, other)
			}
		}
	}
	if err != nil {
		return others, err
	}
	d.all[c] = struct{}{}
	d.work.Go(c.loop) // ends with the connection, which Close ends
	return nil, nil
}

// closeTime bounds how long Close cancels waits.
const closeTime = time.Second

// Close ends all waits with driver.ErrClosed, in the server too, and closes the connections, which frees what they
// hold. It blocks for little more than a second, even if the server hangs. Its error is always nil; a second call does
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
		// Callers are told at once; what is under way in the server is ended below.
		d.cancel(e, driver.ErrClosed)
	}
	d.mu.Unlock()
	patience := time.NewTimer(closeTime)
	defer patience.Stop()
	// Their goroutines interrupt them in the server, over shared connections, so these must still live.
	for _, e := range waits {
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

// endConnections closes all connections that are left: those without work in the usual way, and those that wait for the
// server at once.
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
			patience.Reset(0) // for the others as well: the time is over
		}
		c.Kill()
	}
}

// Crash ends the connections without a word, as the end of the process would. It is for tests, for instance as
// drivertest.Harness.Crash. Close must be called all the same.
func (d *Core) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true // so that nothing is buried, and no connection opened
	d.stop()
	for c := range d.all {
		_ = c.raw.Close()
	}
}

// Errors of the core, and the classes that they become. An engine's Dialect.Judge sorts what its server says.

var (
	// ErrLost says that a connection has ended. A job that gets it has not been begun.
	ErrLost = errors.New("the connection to the server was lost")

	// ErrUnasked says that the session had ended before the server got the question. So it can be asked over another
	// session.
	ErrUnasked = errors.New("the session had ended before")

	// ErrUnsure says that the session may have the lock although Session.Try fails, because the server has refused to
	// take it back.
	ErrUnsure = errors.New("the server has refused to take back what may have been given")

	errNoSession = errors.New("each connection of this client that could ask has a part in the lock already: " +
		"configure more shared connections or waits")
)

// Meaning is what an error of a server or a client library means to the caller.
type Meaning uint8

// What errors mean.
const (
	Unknown   Meaning = iota // the statement may have been run; errors that the engine does not know mean this
	Unreached                // there was no session to ask over, for the moment
	Refused                  // the server has said no, and would again
)

// Unavailable returns err as one of the classes of package driver, by what Dialect.Judge says of it: a RefusedError, or
// an UnavailableError, with NotSent if no session could be asked. op and name are the operation and the lock.
// driver.ErrClosed stays as it is. A refusal has Open set: an acquisition is several statements, and those before the
// refused one may have been run.
func (d *Core) Unavailable(op, name string, err error) error {
	if errors.Is(err, driver.ErrClosed) {
		return err
	}
	switch meaning, hint := d.dialect.Judge(err); meaning {
	case Refused:
		return &driver.RefusedError{Op: op, Name: name, Err: err, Hint: hint, Open: true}
	case Unreached:
		return &driver.UnavailableError{Op: op, Name: name, Err: d.dialect.Advise(err), NotSent: true}
	case Unknown:
	}
	return &driver.UnavailableError{Op: op, Name: name, Err: d.dialect.Advise(err)}
}

// gone is the error of a request that has been released or undone.
func gone(key driver.Key) error {
	return fmt.Errorf("%s %q: there is no such hold: %w", key.Kind, key.Name, driver.ErrLost)
}
