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

var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindElection}

// Driver is one client's access to the locks of a PostgreSQL database. It is safe for concurrent use and must not be
// copied.
type Driver struct {
	core   *sqlsession.Core
	config *pgconn.Config
	opts   Options
	hash   hasher

	// Found out by the first connection, and the same from then on.
	table   table // of the tokens
	texts   *[statements]string
	channel string // on which breaks are announced
	pooler  driver.Finding
}

// New returns a driver over connections of its own to the database that config names. It opens the first one, creates
// the tables if there are none, and checks the set-up as opts say. Close closes the connections. A nil opts means the
// defaults. The configuration's DialFunc and OnNotification are not used.
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

// longestIdle is how long a session does nothing. A PostgreSQL wakes one up that has been idle for ten seconds, to
// write down what it counts, and asks its wall clock then whether the session's time is over too: if that has jumped
// ahead meanwhile it ends the session, and its locks. (Timers of before the last statement do the same, but few fire
// just between a jump and the next sign of life.) The heartbeat looks once a second.
const longestIdle = 8 * time.Second

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
func (d *Driver) begin(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	s, err := d.connect(bounded, false)
	if err != nil {
		return err
	}
	pooler, err := d.checkPooler(bounded, s)
	if err != nil {
		s.discard() // the error that matters is the other one
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

// Traits describes the engine.
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
// pool. See the package documentation for what that costs.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.core.Acquire(ctx, r)
}

// Release gives the lock back in one round trip, over the connection that holds it. If that connection breaks
// meanwhile, it is given up, and the driver sees to it that the server ends the session; until that is known the
// outcome is unknown.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error { return d.core.Release(ctx, r) }

// Close ends all waits with driver.ErrClosed, in the server as well, and closes the connections, which frees what they
// hold. It takes little more than a second, also when the server hangs.
func (d *Driver) Close() error { return d.core.Close() }

// session returns what speaks for c.
func session(c *sqlsession.Conn) *speaker { return c.Session().(*speaker) }

// ask has f run on a shared connection and waits for it as long as ctx lasts.
func ask[T any](ctx context.Context, d *Driver, f func(s *speaker) (T, error)) (T, error) {
	return sqlsession.Ask(ctx, d.core, func(c *sqlsession.Conn) (T, error) { return f(session(c)) })
}

// query has a statement run on a shared connection.
func (d *Driver) query(ctx context.Context, text string, params ...[]byte) (rows, error) {
	return ask(ctx, d, func(s *speaker) (rows, error) { return s.query(text, params...) })
}
