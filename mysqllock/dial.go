// How a session begins. dialect.go's Dial comes here: connect opens a connection by the client library, setUp asks who
// the session is and makes the settings by which the server ends it when the client vanishes. Then sqlsession takes it
// over.

package mysqllock

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// dialTimeout bounds the attempt to open a session, set-up included.
const dialTimeout = 5 * time.Second

// socket remembers the connection below TLS, on which sqlsession sets deadlines: the library's own connection shows
// none of it.
type socket struct {
	mu   sync.Mutex // guards conn
	conn net.Conn
}

// dialer returns how the socket of a session is made: by the program's own function if there is one, or else by a
// dialer with keep-alives. While a statement waits, nothing else notices a server that has vanished.
func (s *socket) dialer(
	own func(ctx context.Context, network, addr string) (net.Conn, error), timeout time.Duration,
) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if own == nil {
		third := max(timeout/3, time.Second)
		d := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: third, Interval: third, Count: 3}}
		own = d.DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := own(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conn = conn
		return conn, nil
	}
}

// configure returns a copy of the configuration with which sessions can be opened. What would break a session that has
// to last, or change the meaning of an answer, is set here whatever the program says.
func configure(config *mysql.Config) (*mysql.Config, error) {
	if config == nil {
		return nil, errors.New("mysql: there is no configuration")
	}
	c := config.Clone()
	c.MultiStatements = true // a wait is two statements, and a check of rights six
	// The core sets deadlines itself, for each statement its own; those of the library would end a wait.
	c.ReadTimeout, c.WriteTimeout = 0, 0
	// The number of affected rows must be that of rows that were written, and arguments must go with a prepared
	// statement.
	c.ClientFoundRows, c.ColumnsWithAlias, c.InterpolateParams = false, false, false
	// Times are read as numbers. With RejectReadOnly, an error of a read-only server would look like a lost connection.
	c.ParseTime, c.RejectReadOnly = false, false
	c.Logger = &mysql.NopLogger{}
	if c.DBName == "" {
		return nil, errors.New("mysql: name the database in which the tokens are kept, as in mysql://host/database")
	}
	return c, nil
}

// connect opens a session with the server's own settings. The context bounds the opening alone. The session's mark is a
// random name, so no two sessions ever have the same.
func (d *Driver) connect(ctx context.Context, waits bool) (*speaker, error) {
	config, k := d.config.Clone(), new(socket)
	config.DialFunc = k.dialer(d.config.DialFunc, d.opts.Timeout)
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	opened, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	my, ok := opened.(clientConn)
	if !ok {
		_ = opened.Close() // it has done nothing yet, so an error has no meaning
		return nil, errors.New("the client library's connections lack what is needed")
	}
	s := &speaker{d: d, my: my, mark: markPrefix + strings.ToLower(rand.Text())}
	s.c = d.core.NewConn(k.conn, waits, s)
	return s, nil
}

// serverOf returns a text by which servers are told apart. A setting that a server does not know counts as empty.
func serverOf(settings map[string]string) string {
	var names []string
	for _, name := range []string{"hostname", "port", "server_id", "server_uid", "server_uuid"} {
		names = append(names, settings[name])
	}
	return strings.Join(names, " ")
}

// settingNames are the settings that decide whether and how locks are kept, which server it is, and how much room it
// has.
var settingNames = []string{
	"version", "version_comment", "wsrep_on", "wsrep_provider", "group_replication_group_name",
	"group_replication_single_primary_mode", "log_bin", "binlog_format", "sync_binlog", "read_only", "super_read_only",
	"innodb_read_only",
	"innodb_flush_log_at_trx_commit", "hostname", "port", "server_id", "server_uid", "server_uuid", "max_connections",
	"max_user_connections", "max_prepared_stmt_count", "thread_handling", "lower_case_table_names",
}

// setUp learns who the session is, and sets what it needs. It costs two round trips, and two more for a session that is
// to wait.
//
// Its own lock, the mark, is taken in the packet of the settings. CONNECTION_ID is asked again there: a proxy that
// shares sessions may have answered with another one than before. The trust in the session begins at the moment before
// the first statement was sent.
//
// A database's name is taken in lower case where the server does not tell the two apart, since it is part of each
// lock's identity.
func (s *speaker) setUp(ctx context.Context) error {
	sent := s.d.core.Clock()
	rows, err := queryAll(s.my.QueryContext(ctx,
		"SELECT CONNECTION_ID(), IF(@@lower_case_table_names = 0, DATABASE(), LOWER(DATABASE()));"+settingsQuery(),
		nil))
	if err == nil && len(rows) == 0 {
		err = errSwapped
	}
	if err != nil {
		return err
	}
	settings := settingsOf(rows[1:])
	if err := refusal(settings); err != nil {
		return err
	}
	s.id = rows[0].uint(0)
	s.server, s.writable = serverOf(settings), !isReadOnly(settings["read_only"])
	if err := s.d.learn(rows[0].text(1), settings); err != nil {
		return err
	}
	rows, err = queryAll(s.my.QueryContext(ctx, s.d.settingsText(settings)+"; SELECT GET_LOCK('"+s.mark+
		"', 0), CONNECTION_ID()", nil))
	switch {
	case err != nil:
		return advise(err)
	case len(rows) != 1 || rows[0].uint(0) != 1 || rows[0].uint(1) != s.id:
		return errSwapped
	}
	s.c.Confirm(sent)
	if err := s.prepareAhead(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// prepareAhead has a session that is to wait prepare what it says once it has the lock. Prepared later, each would add
// a round trip while others wait for its end. A server that prepares no more is no error; see prepare.
func (s *speaker) prepareAhead(ctx context.Context) (err error) {
	if !s.c.Waits() {
		return nil
	}
	for _, st := range []statement{stmtMint, stmtUnlock} {
		s.stmts[st], err = s.my.PrepareContext(ctx, s.d.texts[st])
		if err == nil {
			continue
		}
		s.stmts[st] = nil                        // the library may return a statement along with the error
		if numberOf(err) != errTooManyPrepared { // see prepare
			return advise(err)
		}
	}
	return nil
}

// settingsText makes the settings that a session needs to be a lease.
//
// The server notices a vanished client by wait_timeout while its session has nothing to do; net_read_timeout and
// net_write_timeout are for the moments in between. What the server's configuration sets for other programs must not
// end a wait (max_statement_time) or an idle session earlier (idle_transaction_timeout), nor keep a token from being
// committed (autocommit). Statements wait for rows and tables only for a third of the timeout, so that the session's
// signs of life do not stop. With READ COMMITTED, tokens of new names do not wait for each other's gaps.
func (d *Driver) settingsText(settings map[string]string) string {
	timeout := strconv.Itoa(int(d.opts.Timeout / time.Second))
	third := strconv.Itoa(max(int(d.opts.Timeout/time.Second)/3, 1))
	set := []string{
		"wait_timeout = " + timeout, "net_read_timeout = " + timeout, "net_write_timeout = " + timeout,
		"lock_wait_timeout = " + third, "innodb_lock_wait_timeout = " + third,
		"autocommit = 1", "time_zone = '+00:00'", "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
	}
	if isMariaDB(settings) {
		set = append(set, "max_statement_time = 0", "idle_transaction_timeout = 0")
	} else {
		set = append(set, "max_execution_time = 0")
	}
	return "SET SESSION " + strings.Join(set, ", SESSION ") + "; SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
}

// isMariaDB reports whether the server is MariaDB, whose settings and errors differ from MySQL's.
func isMariaDB(settings map[string]string) bool {
	return strings.Contains(strings.ToLower(settings["version"]+settings["version_comment"]), "mariadb")
}
