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

// dialTimeout bounds the attempt to open a session.
const dialTimeout = 5 * time.Second

// socket remembers the connection below TLS, and refuses to make another: after a broken read the client library dials
// once more to cancel the statement, for up to 15 s, which the driver does better.
type socket struct {
	mu   sync.Mutex
	conn net.Conn
	done bool
}

// dialer returns how the sockets of a session are made.
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

func (s *socket) settled() net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	return s.conn
}

// start sets a session up and makes it one of the driver's. After an error it has ended.
func (s *speaker) start(ctx context.Context) error {
	err := s.setUp(ctx)
	if err == nil {
		err = s.d.core.Adopt(s.c, nil)
	}
	if err != nil {
		s.discard() // the error that matters is this one
	}
	return err
}

// connect opens a session as the server gives it.
func (d *Driver) connect(ctx context.Context, waits bool) (*speaker, error) {
	config, k := d.config.Copy(), new(socket)
	config.DialFunc = k.dialer(d.opts.Timeout)
	var g *gate // of the last connection that was tried, which is the one
	own := config.BuildFrontend
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		g = &gate{from: r}
		return own(g, w)
	}
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { d.core.CheckBreaks() }
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &speaker{d: d, pg: pg, raw: k.settled(), gate: g}
	s.c = d.core.NewConn(s.raw, waits, s)
	return s, nil
}

// discard ends a connection that is nobody's yet.
func (s *speaker) discard() { s.c.Discard() }

// parameter is one of the session's. Servers before the version since, as in server_version_num, do not know it.
type parameter struct {
	name, value string
	since       int
}

// settings are what a session needs. A vanished client is noticed by idle_session_timeout while its session holds
// locks, and by client_connection_check_interval and the TCP settings while it waits. What roles and databases set for
// other programs must not end a wait (statement_timeout) or its session (transaction_timeout), nor keep the token's row
// from being read anew (the isolation level).
func (d *Driver) settings(waits bool) []parameter {
	timeout := d.opts.Timeout
	millis := func(t time.Duration) string { return strconv.FormatInt(max(t.Milliseconds(), 1), 10) }
	seconds := func(t time.Duration) string { return strconv.FormatInt(max(int64(t/time.Second), 1), 10) }
	slice := millis(timeout / 3) // of shared connections: they wait for rows alone, and must give signs of life
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
		{name: "tcp_keepalives_idle", value: seconds(timeout / 3)},
		{name: "tcp_keepalives_interval", value: seconds(timeout / 6)},
		{name: "tcp_keepalives_count", value: "3"},
		{name: "tcp_user_timeout", value: millis(timeout)},
		{name: "plan_cache_mode", value: "force_generic_plan"},
		{name: "jit", value: "off"},
	}
}

// setUpText makes the settings, and tells how the session is called. The function is asked and not the view over it: a
// condition on the view has the server look through all sessions for each of them, which with some thousands takes
// longer than all else in opening one.
func setUpText(settings []parameter) string {
	text := "SELECT pid, backend_start, set_config('synchronous_commit', CASE current_setting('synchronous_commit') " +
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

// setUp makes the settings, and learns how the session is called. It costs two round trips.
func (s *speaker) setUp(ctx context.Context) error {
	if err := checkVersion(s.pg.ParameterStatus("server_version")); err != nil {
		return err
	}
	sent := s.d.core.Clock()
	answer := s.pg.ExecParams(ctx, setUpText(s.d.settings(s.c.Waits())), nil, nil, nil, binaryFormat).Read()
	switch {
	case answer.Err != nil:
		return advise(answer.Err)
	case len(answer.Rows) != 1:
		return errors.New("the server does not tell about this session in pg_stat_get_activity")
	}
	s.pid, s.started = int32Of(answer.Rows[0][0]), answer.Rows[0][1]
	if err := s.setFurther(ctx); err != nil {
		return err
	}
	s.c.Confirm(sent)
	return ctx.Err()
}

// waitsNeed are the statements that every session which waits comes to need. The last one is asked for while others
// wait for its end.
var waitsNeed = []statement{stmtNote, stmtLock, stmtUnlock}

// setFurther makes the settings that not every server and role can, all in one packet, and has shared connections
// listen for breaks, and others prepare what they will say. What fails is left as it is:
// client_connection_check_interval on servers on Windows, deadlock_timeout for roles without the right. A statement
// that could not be prepared is so when it is needed.
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

// concluded hears what the server says to setFurther, in which two settings come before the statements that are
// prepared.
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

// leastVersion is the first that ends idle sessions by itself.
const leastVersion = 14

// checkVersion reads "15.4 (Debian ...)" or "17beta1".
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
	return nil // a pooler may not tell
}
