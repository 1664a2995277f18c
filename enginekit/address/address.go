// Package address reads what the URLs of engines with servers have in common: hosts with and without ports,
// certificates, and the rest of a password that stands where it does not belong. It is a part of engines; each gives
// the word with which its errors begin.
package address

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// CheckPath finds the rest of a password whose / has ended it. Later errors would show it as a path.
func CheckPath(engine string, u *driver.URL) error {
	if strings.Contains(u.Path, "@") {
		return errors.New(engine + ": there is an @ in the path; write a / inside a user or password as %2F")
	}
	return nil
}

// CheckQuery returns the error of the query. One that shows a key or value must not show the rest of a password whose ?
// has ended it: then the @ that follows it is in the query, and nothing is in front of the hosts.
func CheckQuery(engine string, u *driver.URL, p *driver.Params) error {
	err := p.Err()
	if err == nil || u.User+u.Password != "" {
		return err
	}
	for key, values := range u.Query {
		if strings.Contains(key+strings.Join(values, ""), "@") {
			return errors.New(engine + ": there is an @ in the query; write a ? inside a user or password as %3F")
		}
	}
	return err
}

// WithPorts is WithPort of all hosts.
func WithPorts(engine string, hosts []string, port string) ([]string, error) {
	all := make([]string, len(hosts))
	for i, host := range hosts {
		var err error
		if all[i], err = WithPort(engine, host, port); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// WithPort returns "host:port", with the port for a host that has none. An IPv6 address is written in brackets.
func WithPort(engine, host, port string) (string, error) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && len(host) > len("[]") {
		return net.JoinHostPort(host[1:len(host)-1], port), nil
	}
	name, given, err := net.SplitHostPort(host)
	if err != nil {
		if strings.ContainsAny(host, ":[]") {
			return "", fmt.Errorf("%s: a host cannot be read; write an IPv6 address in brackets, as in [::1]:%s",
				engine, port)
		}
		return net.JoinHostPort(host, port), nil
	}
	if name == "" {
		return "", fmt.Errorf("%s: a host is empty; write for instance localhost:%s", engine, port)
	}
	if n, err := strconv.Atoi(given); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("%s: the port of %s is not a number from 1 to 65535", engine, name)
	}
	return host, nil
}

// Encryption is what a query says about TLS: the files of the authority's certificate, and of the client's and its key.
type Encryption struct {
	CA   string // whose certificates are trusted; empty for the system's
	Cert string // the client's certificate; empty for none
	Key  string // of Cert
}

// Config returns the settings of connections that are encrypted if on, and nil for others, for which files would mean
// nothing: how is what to write instead.
func (e Encryption) Config(engine string, on bool, how string) (*tls.Config, error) {
	switch {
	case !on && e.CA+e.Cert+e.Key != "":
		return nil, fmt.Errorf("%s: ca, cert and key are for encrypted connections; write %s", engine, how)
	case !on:
		return nil, nil //nolint:nilnil // nil is what clients take for plain text
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CA != "" {
		pem, err := os.ReadFile(e.CA)
		if err != nil {
			return nil, fmt.Errorf("%s: the certificate authority's file: %w", engine, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s has no certificate in PEM form", engine, e.CA)
		}
	}
	if (e.Cert == "") != (e.Key == "") {
		return nil, errors.New(engine + ": cert and key go together")
	}
	if e.Cert != "" {
		pair, err := tls.LoadX509KeyPair(e.Cert, e.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: the client's certificate: %w", engine, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
