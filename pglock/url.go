// From a URL to a driver. The package's import registers it; the root package's Open comes here, and New of driver.go
// goes on.

package pglock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/address"
	"github.com/jackc/pgx/v5/pgconn"
)

func init() { driver.DefaultMux.Register("postgres", openURL) }

const defaultPort = 5432

// openURL returns a driver for u, with connections of its own. Errors that speak of the set-up or of the URL are passed
// on as they are; all others are explained in url_error.go.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	config, opts, err := fromURL(u, c)
	if err != nil {
		return nil, err
	}
	d, err := New(ctx, config, opts)
	switch {
	case err == nil:
		return d, nil
	case errors.Is(err, enginekit.ErrNotSetUp), strings.HasPrefix(err.Error(), "postgres: "):
		return nil, err
	}
	return nil, openError(config, err, u.User != "")
}

// encryption are the values of the query key sslmode, as everywhere with PostgreSQL.
var encryption = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// tlsQuery is what the query says about encryption: the mode and three paths of files, each "" if it is not there.
type tlsQuery struct{ mode, ca, cert, key string }

// fromURL reads what the package documentation describes under URL. It asks nothing of the server, so a mistake shows
// at once.
func fromURL(u *driver.URL, c driver.Config) (*pgconn.Config, *Options, error) {
	if err := address.CheckPath("postgres", u); err != nil {
		return nil, nil, err
	}
	p := u.Params()
	opts := &Options{
		Table: p.String("table", ""), Timeout: c.Lease, Shared: p.Int("shared", 0, 1), Waits: p.Int("waits", 0, 1),
		Slice: p.Duration("slice", 0), ReadOnly: p.Bool("readonly", false), Logger: c.Logger,
	}
	check := p.String("check", "warn")
	t := tlsQuery{
		mode: p.String("sslmode", ""), ca: p.String("sslrootcert", ""), cert: p.String("sslcert", ""),
		key: p.String("sslkey", ""),
	}
	if err := address.CheckQuery("postgres", u, p); err != nil {
		return nil, nil, err
	}
	var err error
	if opts.Check, err = enginekit.ParseCheckPolicy("postgres", check); err != nil {
		return nil, nil, err
	}
	if _, err := opts.withDefaults(); err != nil {
		return nil, nil, err
	}
	database := strings.TrimPrefix(u.Path, "/")
	if strings.Contains(database, "/") {
		return nil, nil, errors.New("postgres: the path names the database in which the tokens are kept, as in " +
			"postgres://host/database")
	}
	config, err := configFor(u, database, t)
	if err != nil {
		return nil, nil, err
	}
	config.RuntimeParams["application_name"] = applicationName(c.Client)
	return config, opts, nil
}

// applicationName is what the server's own views show of a client. The server would replace what is not ASCII, in some
// versions by several characters; it is done here so that the text is the same everywhere.
func applicationName(client string) string {
	const most = 63 // bytes that the server keeps
	name := "interlock " + client
	if client == "" {
		name = "interlock"
	}
	clean := func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}
	name = strings.Map(clean, name)
	return name[:min(len(name), most)]
}

// configFor makes the client library's configuration. What the URL leaves out comes from where PostgreSQL's programs
// look: the environment (PGHOST, PGUSER, PGPASSWORD, ...) and the file with passwords. The password of the URL is set
// afterwards and is not in the text that the library reads, because errors of the library show that text.
func configFor(u *driver.URL, database string, t tlsQuery) (*pgconn.Config, error) {
	words := map[string]string{
		"user": u.User, "dbname": database, "sslmode": t.mode, "sslrootcert": t.ca, "sslcert": t.cert, "sslkey": t.key,
	}
	var hosts, ports []string
	for _, h := range u.Hosts {
		host, port, err := splitHost(h)
		if err != nil {
			return nil, err
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	words["host"], words["port"] = strings.Join(hosts, ","), strings.Join(ports, ",")
	if len(hosts) > 1 { // the library tries them in turn and keeps the one that can be written to
		words["target_session_attrs"] = "read-write"
	}
	if err := t.check(); err != nil {
		return nil, err
	}
	var text strings.Builder
	for key, value := range words {
		if value != "" {
			fmt.Fprintf(&text, "%s='%s' ", key, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
		}
	}
	config, err := pgconn.ParseConfig(text.String())
	if err != nil {
		return nil, fmt.Errorf("postgres: the settings cannot be used: %w", errors.Unwrap(err))
	}
	if u.Password != "" {
		config.Password = u.Password
	}
	return config, nil
}

// check says what is wrong with the settings of encryption. The library finds it too, but with the whole configuration
// in its text.
func (t *tlsQuery) check() error {
	known := t.mode == ""
	for _, mode := range encryption {
		known = known || t.mode == mode
	}
	if !known {
		return errors.New("postgres: sslmode is one of " + strings.Join(encryption, ", "))
	}
	if (t.cert == "") != (t.key == "") {
		return errors.New("postgres: sslcert and sslkey go together")
	}
	for _, path := range []string{t.ca, t.cert, t.key} {
		if path == "" || path == "system" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("postgres: %w", err)
		}
	}
	return nil
}

// splitHost reads a host, which is the folder of a socket if it begins with a slash.
func splitHost(h string) (host, port string, err error) {
	if filepath.IsAbs(h) {
		return h, strconv.Itoa(defaultPort), nil
	}
	at, err := address.WithPort("postgres", h, strconv.Itoa(defaultPort))
	if err != nil {
		return "", "", err
	}
	return net.SplitHostPort(at)
}
