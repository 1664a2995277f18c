// From a URL to a driver. The package's import registers it; the root package's Open comes here, and New of driver.go
// goes on.

package mysqllock

import (
	"context"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/enginekit/address"
)

func init() { driver.DefaultMux.Register("mysql", openURL) }

const defaultPort = "3306"

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
	case errors.Is(err, enginekit.ErrNotSetUp), strings.HasPrefix(err.Error(), "mysql: "):
		return nil, err
	}
	return nil, openError(config, err)
}

// fromURL reads what the package documentation describes under URL. It asks nothing of the server, so a mistake shows
// at once.
func fromURL(u *driver.URL, c driver.Config) (*mysql.Config, *Options, error) {
	if err := address.CheckPath("mysql", u); err != nil {
		return nil, nil, err
	}
	p := u.Params()
	opts := &Options{
		Table: p.String("table", ""), Timeout: c.Lease, Shared: p.Int("shared", 0, 1), Waits: p.Int("waits", 0, 1),
		Slice: p.Duration("slice", 0), ReadOnly: p.Bool("readonly", false), Logger: c.Logger,
	}
	check := p.String("check", "warn")
	encrypted := p.Bool("tls", false)
	files := address.Encryption{CA: p.String("ca", ""), Cert: p.String("cert", ""), Key: p.String("key", "")}
	if err := address.CheckQuery("mysql", u, p); err != nil {
		return nil, nil, err
	}
	var err error
	if opts.Check, err = enginekit.ParseCheckPolicy("mysql", check); err != nil {
		return nil, nil, err
	}
	if _, err := opts.withDefaults(); err != nil {
		return nil, nil, err
	}
	config := mysql.NewConfig()
	config.User, config.Passwd = u.User, u.Password
	config.DBName = strings.TrimPrefix(u.Path, "/")
	if config.DBName == "" || strings.Contains(config.DBName, "/") {
		return nil, nil, errors.New("mysql: the path names the database in which the tokens are kept, as in " +
			"mysql://host/database")
	}
	if err := locate(config, u.Hosts); err != nil {
		return nil, nil, err
	}
	config.ConnectionAttributes = "program_name:interlock"
	// The client library takes the server's name for the certificate from the address.
	config.TLS, err = files.Config("mysql", encrypted, "tls=true")
	return config, opts, err
}

// locate reads the host, which is a socket's path if it begins with a slash. Without a host it is localhost. More than
// one is refused and not tried in turn: a client that has lost its server must not look for its locks at another.
func locate(config *mysql.Config, hosts []string) error {
	if len(hosts) > 1 {
		return errors.New("mysql: name one server: GET_LOCK is a lock of one server, so clients of two of them would " +
			"both have it")
	}
	host := "localhost"
	if len(hosts) == 1 {
		host = hosts[0]
	}
	if strings.HasPrefix(host, "/") {
		config.Net, config.Addr = "unix", host
		return nil
	}
	config.Net = "tcp"
	var err error
	config.Addr, err = address.WithPort("mysql", host, defaultPort)
	return err
}
