// The driver: how it is opened, what it can do, and the calls that go straight to the core in enginekit/sqlsession,
// which owns requests, connections and trust. The engine's own way of doing it is in dialect.go and speaker.go.

package pglock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// kinds are the kinds of locks that the engine has.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindElection}

// Driver is one client's access to the locks of a PostgreSQL database. It is safe for concurrent use and must not be
// copied. Every call that asks the server runs over one of its own connections, and ends when its context does.
type Driver struct {
	core   *sqlsession.Core
	config *pgconn.Config
	opts   Options
	hash   hasher

	// Set by begin, over the first connection and before any other goroutine has the driver, and never changed after
	// that.
	table   table // of the tokens
	texts   *[statements]string
	channel string         // on which breaks are announced
	pooler  driver.Finding // what the first connection showed; Diagnose does not look again
}

// New returns a driver over connections of its own to the database that config names. It opens the first one, creates
// the tables if there are none (but for Options.ReadOnly), and checks the set-up as opts say. ctx bounds New alone.
// Close closes the connections. A nil opts means the defaults. The configuration's DialFunc and OnNotification are not
// used, and config is not changed.
//
// It returns an error of the server or the network, of options that are not allowed, of a pooler that shares sessions,
// and with CheckRefuse an error that matches enginekit.ErrNotSetUp. After an error nothing is open.
func New(ctx context.Context, config *pgconn.Config, opts *Options) (*Driver, error) {
	if config == nil {
		return nil, errors.New("postgres: there is no configuration: make one with pgconn.ParseConfig")
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return start(ctx, config, o, hash)
}

// longestIdle is the longest time in which a session does nothing, whatever the timeout is.
//
// A PostgreSQL wakes up a session that has been idle for ten seconds, to write down its statistics, and asks its wall
// clock then whether the time of idle_session_timeout is over too. If the clock has jumped ahead meanwhile, the server
// ends the session, and its locks. A session that is never idle for ten seconds is not asked. (Timers from before the
// last statement ask as well, but few of them fire between a jump and the next sign of life.) Eight leaves room for the
// heartbeat, which looks once a second.
const longestIdle = 8 * time.Second

// start is New with a hash function, which tests exchange for one whose numbers collide.
func start(ctx context.Context, config *pgconn.Config, o Options, h hasher) (*Driver, error) {
	d := &Driver{config: config.Copy(), opts: o, hash: h}
	d.core = sqlsession.New(sqlsession.Config{
		Timeout: o.Timeout, Signs: min(o.Timeout/3, longestIdle), Shared: o.Shared, Waits: o.Waits,
		Quiet: 10 * time.Millisecond, BreakPause: breakPause, Recent: hotKnown,
		Warn: func(what, lock string, err error) { o.Logger.Warn("postgres: "+what, "lock", lock, "err", err) },
	}, dialect{d})
	if err := d.begin(ctx); err != nil {
		enginekit.CloseWithin(ctx, d.core.Close) // nothing is held yet
		return nil, err
	}
	return d, nil
}

// begin opens the first connection and finds out whether locks can be kept.
//
// The order matters. A pooler is looked for before anything is set up, because set-up of a shared session would change
// it for others. The table is resolved before the session is started, since its identity names the channel that the
// session listens on. The tables are created over the adopted connection, which bounds each statement. The check comes
// last and finds the tables there.
func (d *Driver) begin(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := d.connect(bounded, false)
	if err != nil {
		return err
	}
	pooler, err := d.checkPooler(bounded, s)
	if err != nil {
		s.discard() // an error of closing would hide the one that matters
		return err
	}
	if d.table, err = s.resolve(bounded); err != nil {
		s.discard() // likewise
		return err
	}
	d.texts, d.channel = textsFor(d.table.quoted), channelOf(d.table.identity())
	if err := s.start(bounded); err != nil {
		return err
	}
	d.core.AddShared(s.c)
	if err := d.createTables(ctx); err != nil {
		return err
	}
	d.pooler = pooler
	if err := d.checkAtStart(ctx); err != nil {
		return err
	}
	d.core.Start()
	return nil
}

// Traits describes the engine. It asks nothing.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "postgres", Lifetime: driver.Sessions, Timeout: d.opts.Timeout, Resumes: true,
		Kinds: slices.Clone(kinds),
		Unsupported: []driver.Unsupported{
			{Ability: driver.NamedOwners, Reason: "an advisory lock belongs to one session of one process"},
			{
				Ability: driver.Recalls,
				Reason:  "the server tells nobody that another session waits for an advisory lock",
			},
			{Ability: driver.LockDelays, Reason: "the server frees a lock with its session, and cannot keep others " +
				"out after that"},
			{Ability: driver.Conversion, Reason: noConversion},
			{
				Ability: driver.Ability(driver.KindSemaphore),
				Reason:  "an advisory lock has one holder or any number, and no limit in between",
			},
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
// meanwhile, the driver ends the session over another one; until the server confirms that, the outcome is unknown, and
// the error says so.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error { return d.core.Release(ctx, r) }

// Close ends all waits with driver.ErrClosed, in the server as well, and closes the connections, which frees what they
// hold. It takes little more than a second, also when the server hangs. If it hangs, the locks become free by the
// server's own timeouts.
func (d *Driver) Close() error { return d.core.Close() }

// session returns the speaker of c: the part of a connection that knows PostgreSQL.
func session(c *sqlsession.Conn) *speaker { return c.Session().(*speaker) }

// ask runs f in the goroutine of a shared connection and waits for the answer until ctx ends. After that f may still
// run, and its answer is dropped.
func ask[T any](ctx context.Context, d *Driver, f func(s *speaker) (T, error)) (T, error) {
	return sqlsession.Ask(ctx, d.core, func(c *sqlsession.Conn) (T, error) { return f(session(c)) })
}

// query runs a statement on a shared connection, unprepared.
func (d *Driver) query(ctx context.Context, text string, params ...[]byte) (rows, error) {
	return ask(ctx, d, func(s *speaker) (rows, error) { return s.query(text, params...) })
}
