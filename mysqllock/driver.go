// The driver: how it is opened, what it can do, and the calls that go straight to the core in enginekit/sqlsession,
// which owns requests, connections and trust. The engine's own way of doing it is in dialect.go and speaker.go.

package mysqllock

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// kinds are the kinds of locks that the engine has.
var kinds = []driver.Kind{driver.KindMutex, driver.KindElection}

// Driver is one client's access to the locks of a MySQL or MariaDB server. It is safe for concurrent use and must not
// be copied. Every call that asks the server runs over one of its own connections, and ends when its context does.
type Driver struct {
	core   *sqlsession.Core
	config *mysql.Config
	opts   Options
	texts  *[statements]string // with the table's name put in

	mu       sync.Mutex        // guards what follows
	scope    string            // database and table, a part of each lock's identity; "" before the first session
	settings map[string]string // of the server, by settingNames, as the last session has read them
}

// New returns a driver over connections of its own to the database that config names. It opens the first one, creates
// the tables if there are none (but for Options.ReadOnly), and checks the set-up as opts say. ctx bounds New alone.
// Close closes the connections. A nil opts means the defaults. The configuration's DialFunc is used if there is one;
// its timeouts of reading and writing are not. config is not changed.
//
// It returns an error of the server or the network, of options that are not allowed, of a server on which GET_LOCK does
// not exclude, and with CheckRefuse an error that matches enginekit.ErrNotSetUp. After an error nothing is open.
func New(ctx context.Context, config *mysql.Config, opts *Options) (*Driver, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	own, err := configure(config)
	if err != nil {
		return nil, err
	}
	d := &Driver{config: own, opts: o, texts: textsFor(o.Table)}
	d.core = sqlsession.New(sqlsession.Config{
		Timeout: o.Timeout, Signs: o.Timeout / 3, Shared: o.Shared, Waits: o.Waits,
		Quiet: quiet, BreakPause: breakPause,
		Warn: func(what, lock string, err error) { o.Logger.Warn("mysql: "+what, "lock", lock, "err", err) },
	}, dialect{d})
	if err := d.begin(ctx); err != nil {
		enginekit.CloseWithin(ctx, d.core.Close) // nothing is held yet
		return nil, err
	}
	return d, nil
}

// begin opens the first connection and finds out whether locks can be kept. The tables are created before the check,
// which looks for rights on them.
func (d *Driver) begin(ctx context.Context) error {
	c, err := dialect{d}.Dial(ctx, false)
	if err != nil {
		return err
	}
	d.core.AddShared(c)
	if err := d.createTables(ctx); err != nil {
		return err
	}
	if err := d.checkAtStart(ctx); err != nil {
		return err
	}
	d.core.Start()
	return nil
}

// learn keeps what a new session has found out. It refuses a session whose database is another one than that of the
// sessions before, or has another name: its locks would be others, and its tokens be kept in another table. That
// happens when init_connect or lower_case_table_names was changed.
func (d *Driver) learn(database string, settings map[string]string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	scope := database + "." + d.opts.Table
	if d.scope != "" && d.scope != scope {
		return fmt.Errorf("a new session keeps its tokens in %s, and those before in %s: close the client and open "+
			"it again", scope, d.scope)
	}
	d.scope, d.settings = scope, settings
	return nil
}

// Traits describes the engine. It asks nothing.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "mysql", Lifetime: driver.Sessions, Timeout: d.opts.Timeout, Resumes: true, Kinds: slices.Clone(kinds),
		Unsupported: []driver.Unsupported{
			{Ability: driver.NamedOwners, Reason: "a lock of GET_LOCK belongs to one session of one process"},
			{Ability: driver.Recalls, Reason: "the server tells nobody that another session waits in GET_LOCK"},
			{Ability: driver.LockDelays, Reason: "the server frees a lock with its session, and cannot keep others " +
				"out after that"},
			{Ability: driver.Ability(driver.KindRWMutex), Reason: "GET_LOCK has no shared mode"},
			{Ability: driver.Ability(driver.KindSemaphore), Reason: "GET_LOCK counts nothing"},
			{
				Ability: driver.Ability(driver.KindLatch),
				Reason:  "the server's locks belong to sessions, and a latch to nobody; a row and a query do better",
			},
			{
				Ability: driver.Ability(driver.KindCond),
				Reason:  "a session cannot give up a lock and wait for something else in one step",
			},
		},
	}
}

// Acquire asks for the lock on a shared connection, and if it is held waits for it in the server on a connection of the
// pool. See the package documentation for what that costs. When ctx ends, the wait is cancelled in the server too.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.core.Acquire(ctx, r)
}

// Release gives the lock back in one round trip, over the connection that holds it. If that connection breaks
// meanwhile, the driver has the server end the session over another one; until that is known, the outcome is unknown,
// and the error says so.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error { return d.core.Release(ctx, r) }

// Close ends all waits with driver.ErrClosed, in the server as well, and closes the connections, which frees what they
// hold. It takes little more than a second, also when the server hangs. If it hangs, the locks become free by the
// server's own timeouts.
func (d *Driver) Close() error { return d.core.Close() }

// session returns the speaker of c: the part of a connection that knows MySQL.
func session(c *sqlsession.Conn) *speaker { return c.Session().(*speaker) }

// ask runs a text in the goroutine of a shared connection and waits for the answer until ctx ends. After that the
// statement may still run, and its answer is dropped.
func (d *Driver) ask(ctx context.Context, text string) ([]row, error) {
	return sqlsession.Ask(ctx, d.core, func(c *sqlsession.Conn) ([]row, error) { return session(c).query(text) })
}
