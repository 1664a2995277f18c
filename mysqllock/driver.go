package mysqllock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
	_ driver.Session   = (*conn)(nil)
)

var kinds = []driver.Kind{driver.KindMutex}

// Driver is one client's access to the locks of a MySQL or MariaDB server. It is safe for concurrent use and must not be
// copied.
type Driver struct {
	config *mysql.Config
	opts   Options
	texts  *[statements]string
	born   time.Time // where instants are counted from

	base context.Context //nolint:containedctx // ended by Close: what opens connections ends with it
	stop context.CancelFunc
	work sync.WaitGroup // every goroutine of the driver

	mu        sync.Mutex        // guards what follows; nothing blocks under it
	scope     string            // database and table, which are part of each lock's identity
	settings  map[string]string // of the server, by settingNames
	closed    bool              // nothing is asked for any more
	ended     bool              // nothing is done any more
	entries   map[string]*entry // by request ID
	places    map[lockID]*place
	contended map[lockID]bool // locks that were held when they were last waited for
	gone      tombstones
	shared    []*conn
	dialing   bool  // a shared connection is being opened
	wanting   []job // what waits for a shared connection
	pool      pool  // of connections that wait
	all       map[*conn]struct{}
	polling   int           // waits for which the pool has no connection
	looked    time.Duration // when breaks were last asked for
	pruned    time.Duration // when old rows were last looked for
	cursor    string        // up to which row they were
}

// New returns a driver over connections of its own to the database that config names. It opens the first one, creates
// the tables if there are none, and checks the set-up as opts say. Close closes the connections. A nil opts means the
// defaults. The configuration's DialFunc is used if there is one; timeouts of reading and writing are not.
func New(ctx context.Context, config *mysql.Config, opts *Options) (*Driver, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	own, err := configure(config)
	if err != nil {
		return nil, err
	}
	d := &Driver{
		config: own, opts: o, texts: textsFor(o.Table), born: time.Now().Add(-time.Second),
		entries: make(map[string]*entry), places: make(map[lockID]*place), contended: make(map[lockID]bool), all: make(map[*conn]struct{}),
	}
	d.pool.freed = make(chan struct{}, 1)
	d.base, d.stop = context.WithCancel(background)
	if err := d.begin(ctx); err != nil {
		_ = d.Close() // nothing is held yet
		return nil, err
	}
	return d, nil
}

// begin opens the first connection and finds out whether locks can be kept.
func (d *Driver) begin(ctx context.Context) error {
	c, err := d.dial(ctx, false)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.shared = append(d.shared, c)
	d.mu.Unlock()
	if err := d.createTables(ctx); err != nil {
		return err
	}
	if err := d.checkAtStart(ctx); err != nil {
		return err
	}
	d.spawn(d.beat) // ends with Close
	return nil
}

// learn takes in what a new session has found out. The scope never changes: it is configured.
func (d *Driver) learn(database string, settings map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scope, d.settings = database+"."+d.opts.Table, settings
}

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "mysql", Ends: driver.Sessions, Timeout: d.opts.Timeout, Resumes: true, Kinds: slices.Clone(kinds),
		Lacks: []driver.Lack{
			{Ability: driver.NamedOwners, Reason: "a lock of GET_LOCK belongs to one session of one process"},
		},
	}
}

// clock is the monotonic time since the driver was born. It is never 0.
func (d *Driver) clock() time.Duration { return time.Since(d.born) }

// spawn runs f in a goroutine that Close waits for, unless the driver has ended.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	d.work.Go(f)
	return true
}

// adopt makes c one of the driver's connections, unless the driver has ended, or others are to another server: after a
// failover the old connections end first.
func (d *Driver) adopt(c *conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return errClosed
	}
	for other := range d.all {
		if other.server != c.server && other.goesOn() {
			return errOtherServer
		}
	}
	d.all[c] = struct{}{}
	d.work.Go(c.loop) // ends with the connection, which Close ends
	return nil
}

// closeTime bounds the cancelling of waits in Close.
const closeTime = time.Second

// Close ends all waits with driver.ErrClosed, in the server as well, and closes the connections, which frees what they
// hold. It takes little more than a second, also when the server hangs.
func (d *Driver) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	var waits []*entry
	for _, e := range d.entries {
		if e.phase == waiting {
			waits = append(waits, e)
		}
		d.cancel(e, errClosed)
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

// endConnections closes all that are left: in the usual way what has nothing to do, and at once what waits for the server.
func (d *Driver) endConnections() {
	d.mu.Lock()
	d.ended = true
	all := make([]*conn, 0, len(d.all))
	for c := range d.all {
		all = append(all, c)
	}
	wanting := d.wanting
	d.wanting = nil
	d.mu.Unlock()
	for _, j := range wanting {
		j.dead(errClosed)
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
		c.kill()
	}
}

// crash ends the connections without a word, as the end of the process would. It is for tests.
func (d *Driver) crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true // so that nothing is buried, and no connection opened
	d.stop()
	for c := range d.all {
		_ = c.raw.Close()
	}
}
