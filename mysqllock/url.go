package mysqllock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/sqllock"
)

func init() { driver.DefaultMux.Register("mysql", openURL) }

const defaultPort = "3306"

// openURL returns a driver for u, with connections of its own.
func openURL(ctx context.Context, u *driver.URL, c driver.Config) (driver.Driver, error) {
	config, opts, err := fromURL(u, c)
	if err != nil {
		return nil, err
	}
	d, err := New(ctx, config, opts)
	switch {
	case err == nil:
		return d, nil
	case errors.Is(err, sqllock.ErrSetUp), strings.HasPrefix(err.Error(), "mysql: "):
		return nil, err
	}
	return nil, &openError{config, err}
}

// misplaced finds the rest of a password whose / has ended it. Later errors would show it as a database.
func misplaced(u *driver.URL) error {
	if strings.Contains(u.Path, "@") {
		return errors.New("mysql: there is an @ in the path; write a / inside a user or password as %2F")
	}
	return nil
}

// readQuery returns the error of the query. One that shows a key or value must not show the rest of a password whose ?
// has ended it: then the @ that follows it is in the query, and nothing is in front of the hosts.
func readQuery(u *driver.URL, p *driver.Params) error {
	err := p.Err()
	if err == nil || u.User+u.Password != "" {
		return err
	}
	for key, values := range u.Query {
		if strings.Contains(key+strings.Join(values, ""), "@") {
			return errors.New("mysql: there is an @ in the query; write a ? inside a user or password as %3F")
		}
	}
	return err
}

// policies are the values of the query key check.
var policies = map[string]CheckPolicy{"warn": CheckWarn, "refuse": CheckRefuse, "none": CheckNone}

// fromURL reads what the package doc describes under URL.
func fromURL(u *driver.URL, c driver.Config) (*mysql.Config, *Options, error) {
	if err := misplaced(u); err != nil {
		return nil, nil, err
	}
	p := u.Params()
	opts := &Options{
		Table: p.String("table", ""), Timeout: c.Lease, Shared: p.Int("shared", 0, 1), Waits: p.Int("waits", 0, 1),
		Slice: p.Duration("slice", 0), Logger: c.Logger,
	}
	check := p.String("check", "warn")
	t := tlsQuery{on: p.Bool("tls", false), ca: p.String("ca", ""), cert: p.String("cert", ""), key: p.String("key", "")}
	if err := readQuery(u, p); err != nil {
		return nil, nil, err
	}
	policy, known := policies[check]
	if !known {
		return nil, nil, errors.New("mysql: check is warn, refuse or none")
	}
	opts.Check = policy
	if _, err := opts.withDefaults(); err != nil {
		return nil, nil, err
	}
	config := mysql.NewConfig()
	config.User, config.Passwd = u.User, u.Password
	config.DBName = strings.TrimPrefix(u.Path, "/")
	if config.DBName == "" || strings.Contains(config.DBName, "/") {
		return nil, nil, errors.New("mysql: the path names the database in which the tokens are kept, as in mysql://host/database")
	}
	if len(u.Hosts) > 1 {
		return nil, nil, errors.New("mysql: name one server: GET_LOCK is a lock of one server, so clients of two of them would both have it")
	}
	if err := address(config, u.Hosts); err != nil {
		return nil, nil, err
	}
	config.ConnectionAttributes = "program_name:interlock"
	return config, opts, t.encrypt(config)
}

// address reads the host, which is a socket's path if there is a / in it.
func address(config *mysql.Config, hosts []string) error {
	host := "localhost"
	if len(hosts) == 1 {
		host = hosts[0]
	}
	if strings.HasPrefix(host, "/") {
		config.Net, config.Addr = "unix", host
		return nil
	}
	config.Net = "tcp"
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && len(host) > len("[]") {
		config.Addr = net.JoinHostPort(host[1:len(host)-1], defaultPort)
		return nil
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		if strings.ContainsAny(host, ":[]") {
			return errors.New("mysql: the host cannot be read; write an IPv6 address in brackets, as in [::1]:3306")
		}
		config.Addr = net.JoinHostPort(host, defaultPort)
		return nil
	}
	if name == "" {
		return errors.New("mysql: the host is empty; write for instance localhost:3306")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("mysql: the port of %s is not a number from 1 to 65535", name)
	}
	config.Addr = host
	return nil
}

// tlsQuery is what the query says about encryption.
type tlsQuery struct {
	on            bool
	ca, cert, key string
}

// encrypt sets TLS up, if the URL asks for it. The client library takes the server's name from the address.
func (q *tlsQuery) encrypt(config *mysql.Config) error {
	if !q.on {
		if q.ca != "" || q.cert != "" || q.key != "" {
			return errors.New("mysql: ca, cert and key are for encrypted connections; write tls=true")
		}
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if q.ca != "" {
		pem, err := os.ReadFile(q.ca)
		if err != nil {
			return fmt.Errorf("mysql: the certificate authority's file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("mysql: %s has no certificate in PEM form", q.ca)
		}
	}
	if (q.cert == "") != (q.key == "") {
		return errors.New("mysql: cert and key go together")
	}
	if q.cert != "" {
		pair, err := tls.LoadX509KeyPair(q.cert, q.key)
		if err != nil {
			return fmt.Errorf("mysql: the client's certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	config.TLS = c
	return nil
}
