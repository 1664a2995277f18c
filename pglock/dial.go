// How a session begins. dialect.go's Dial and driver.go's begin come here; connect opens a connection by the client
// library, setUp makes the settings by which the server ends the session of a vanished client, and then sqlsession
// takes the connection over.

package pglock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// dialTimeout bounds the attempt to open a session, set-up included.
const dialTimeout = 5 * time.Second

// socket remembers the connection below TLS, on which deadlines are set, and refuses to make another one. After a
// broken read the client library dials once more to cancel the statement, for up to 15 s; the driver has the server end
// the session over another connection instead (Bury), which also shows when that has happened.
type socket struct {
	mu   sync.Mutex // guards the others
	conn net.Conn   // the last one that was dialled: an attempt without TLS comes after one with it
	done bool       // the session is open, so whoever dials now only wants to cancel
}

// dialer returns the function by which the client library makes the sockets of a session. Keep-alives let the client
// notice a server that has vanished, after about 4/3 of the timeout.
func (s *socket) dialer(timeout time.Duration) pgconn.DialFunc {
	third := max(timeout/3, time.Second)
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: third, Interval: third, Count: 3}}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		s.mu.Lock()
		done := s.done
		s.mu.Unlock()
		if done {
			return nil, sqlsession.ErrLost
		}
		conn, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conn = conn
		return conn, nil
	}
}

// settled returns the connection of the session that is open, and forbids any further one.
func (s *socket) settled() net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	return s.conn
}

// start sets a session up and hands it to the core, which runs its goroutine from then on. After an error the session
// has been ended.
func (s *speaker) start(ctx context.Context) error {
	err := s.setUp(ctx)
	if err == nil {
		err = s.d.core.Adopt(s.c, s.beside)
	}
	if err != nil {
		s.discard() // an error of closing would hide the one that matters
	}
	return err
}

// beside refuses a session of another server than that of the others. After a failover those end first; behind a load
// balancer, or in a URL with two servers that can both be written to, each of them would grant the lock.
func (s *speaker) beside(other *sqlsession.Conn) error {
	if session(other).server != s.server {
		return errOtherServer
	}
	return nil
}

// connect opens a session with the server's own settings. The context bounds the opening alone.
func (d *Driver) connect(ctx context.Context, waits bool) (*speaker, error) {
	config, k := d.config.Copy(), new(socket)
	config.DialFunc = k.dialer(d.opts.Timeout)
	var g *gate // of the last connection that was tried, which is the one in use
	own := config.BuildFrontend
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		g = &gate{from: r}
		return own(g, w)
	}
	// The library calls OnNotification while it reads, in the goroutine that runs the connection's statements, so
	// CheckBreaks must not run a statement itself.
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { d.core.CheckBreaks() }
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &speaker{d: d, pg: pg, raw: k.settled(), gate: g}
	s.c = d.core.NewConn(s.raw, waits, s)
	return s, nil
}

// discard ends a connection that the core has not adopted.
func (s *speaker) discard() { s.c.Discard() }

// parameter is a setting of the session. Servers before the version since, as in server_version_num, do not know it; 0
// means that all do.
type parameter struct {
	name, value string
	since       int
}

// settings are what a session needs to be a lease.
//
// The server notices a vanished client by idle_session_timeout while its session holds locks, and by
// client_connection_check_interval and the TCP settings while it waits in a statement. What roles and databases set for
// other programs must not end a wait (statement_timeout) or its session (transaction_timeout). Nor must the isolation
// level keep the token's row from being read anew after a wait: a token would then be minted from an old one.
func (d *Driver) settings(waits bool) []parameter {
	timeout := d.opts.Timeout
	millis := func(t time.Duration) string { return strconv.FormatInt(max(t.Milliseconds(), 1), 10) }
	// Rounded up: a third before the first and a third before each of two probes are never less than the timeout. Where
	// a server's system has no tcp_user_timeout, they alone say when it gives a silent client up.
	third := strconv.FormatInt(int64((timeout/3+time.Second-1)/time.Second), 10)
	slice := millis(timeout / 3) // shared connections wait for locks of rows alone, and must give signs of life
	if waits {
		slice = millis(d.opts.Slice)
	}
	return []parameter{
		{name: "idle_session_timeout", value: millis(timeout)},
		{name: "lock_timeout", value: slice},
		{name: "statement_timeout", value: "0"},
		{name: "transaction_timeout", value: "0", since: 170000},
		{name: "idle_in_transaction_session_timeout", value: "0"},
		{name: "default_transaction_isolation", value: "read committed"},
		{name: "default_transaction_read_only", value: "off"},
		{name: "tcp_keepalives_idle", value: third},
		{name: "tcp_keepalives_interval", value: third},
		{name: "tcp_keepalives_count", value: "2"},
		{name: "tcp_user_timeout", value: millis(timeout)},
		// Without this the server plans each of the first five runs of a prepared statement anew, for parameters that
		// change nothing about the plan.
		{name: "plan_cache_mode", value: "force_generic_plan"},
		{name: "jit", value: "off"},
	}
}

// setUpText makes the settings and returns the number of the server's process, when it began and when the server did,
// all in one statement.
// synchronous_commit is raised from off, so that a token is on disk before its grant counts, and is otherwise left as
// the role has it.
//
// The function pg_stat_get_activity is asked and not the view pg_stat_activity over it: a condition on the view has the
// server look through all sessions for each new one, which with some thousands takes longer than all else in opening
// one.
func setUpText(settings []parameter) string {
	text := "SELECT pid, backend_start, pg_postmaster_start_time(), set_config('synchronous_commit', CASE current_setting('synchronous_commit') " +
		"WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)"
	for _, p := range settings {
		set := fmt.Sprintf("set_config('%s', '%s', false)", p.name, p.value)
		if p.since > 0 {
			set = fmt.Sprintf("CASE WHEN current_setting('server_version_num')::int >= %d THEN %s END", p.since, set)
		}
		text += ", " + set
	}
	return text + " FROM pg_stat_get_activity(pg_backend_pid())"
}

// setUp makes the settings and learns the session's name. It costs two round trips. The trust in the session begins at
// the moment before the first was sent: from then on idle_session_timeout holds.
func (s *speaker) setUp(ctx context.Context) error {
	if err := checkVersion(s.pg.ParameterStatus("server_version")); err != nil {
		return err
	}
	// The time was measured before the statement was sent, as for each sign of life: so it is never later than the
	// moment from which the server counts.
	sent := s.d.core.Clock()
	answer := s.pg.ExecParams(ctx, setUpText(s.d.settings(s.c.Waits())), nil, nil, nil, binaryFormat).Read()
	switch {
	case answer.Err != nil:
		return advise(answer.Err)
	case len(answer.Rows) != 1:
		return errors.New("the server does not tell about this session in pg_stat_get_activity")
	}
	s.pid, s.started = int32Of(answer.Rows[0][0]), answer.Rows[0][1]
	s.server = string(answer.Rows[0][2])
	if err := s.setFurther(ctx); err != nil {
		return err
	}
	s.c.Confirm(sent)
	return ctx.Err()
}

// waitsNeed are the statements that every session that waits comes to need, so they are prepared when it is opened.
// stmtUnlock is the one that matters: prepared later, it would add a round trip to a hand-off for which others wait.
var waitsNeed = []statement{stmtNote, stmtLock, stmtUnlock}

// setFurther makes the settings that not every server and role can make, all in one packet and so in one round trip.
// Shared connections listen for breaks; those that wait leave the search for deadlocks and prepare waitsNeed.
//
// What the server refuses is left as it is: client_connection_check_interval on Windows, deadlock_timeout for a role
// without the right. A statement that could not be prepared here is prepared when it is needed, and its error shows
// then.
//
// Each line has its own sync, so that a refused one does not take the next with it.
func (s *speaker) setFurther(ctx context.Context) error {
	x := &conversation{s: s, p: s.pg.StartPipeline(ctx)}
	say := func(text string) {
		x.p.SendQueryParams(text, nil, nil, nil, nil)
		x.p.SendPipelineSync()
	}
	say(fmt.Sprintf("SELECT set_config('client_connection_check_interval', '%d', false)",
		max(s.d.opts.Timeout/3, time.Second).Milliseconds()))
	if !s.c.Waits() {
		say("LISTEN " + s.d.channel)
		return s.concluded(x, nil)
	}
	say("SELECT set_config('deadlock_timeout', '2147483647', false)")
	for _, st := range waitsNeed {
		x.p.SendPrepare(st.String(), s.d.texts[st], nil)
		x.p.SendPipelineSync()
	}
	return s.concluded(x, waitsNeed)
}

// concluded reads the server's answers to setFurther, where two settings come before the statements that are prepared.
// It returns only errors that have ended the connection.
func (s *speaker) concluded(x *conversation, prepares []statement) error {
	err := x.p.Flush()
	for i := 0; err == nil && i < 2+len(prepares); i++ {
		_, refused := x.receive()
		switch {
		case isBroken(refused):
			err = refused
		case i >= 2:
			s.prepared[prepares[i-2]] = refused == nil
		}
	}
	if closed := x.p.Close(); err == nil && isBroken(closed) {
		err = closed
	}
	return err
}

// leastVersion is the first PostgreSQL with idle_session_timeout, which ends idle sessions. Without it a client that
// stands still would keep its locks.
const leastVersion = 14

// checkVersion refuses a server that is too old. It reads "15.4 (Debian ...)" or "17beta1".
func checkVersion(version string) error {
	digits := 0
	for digits < len(version) && version[digits] >= '0' && version[digits] <= '9' {
		digits++
	}
	major, err := strconv.Atoi(version[:digits])
	if err == nil && major < leastVersion {
		return fmt.Errorf("the server is PostgreSQL %s; %d or later is needed, whose idle_session_timeout frees the "+
			"locks of a client that has vanished",
			version, leastVersion)
	}
	return nil // a pooler may not tell the version; the settings fail then if the server is too old
}
