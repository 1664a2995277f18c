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

// CheckPath finds the rest of a password that a slash has cut off: it would be the path, and later errors would show
// it.
func CheckPath(engine string, u *driver.URL) error {
	if strings.Contains(u.Path, "@") {
		return errors.New(engine + ": there is an @ in the path; write a / inside a user or password as %2F")
	}
	return nil
}

// CheckQuery returns the error of the query. An error that shows a key or value must not show the rest of a password
// that a question mark has cut off. Such a URL has an @ in its query and no user in front of the hosts.
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

// WithPorts is WithPort for each host. It returns the first error.
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

// WithPort returns "host:port", with the given port for a host that has none. An IPv6 address must be written in
// brackets.
func WithPort(engine, host, port string) (string, error) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && len(host) > len("[]") {
		return net.JoinHostPort(host[1:len(host)-1], port), nil
	}
	name, given, err := net.SplitHostPort(host)
	if err != nil {
		// Colons without a port that can be split off: most likely an IPv6 address without brackets. The host is not
		// shown, because it may be the rest of a password.
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

// Encryption is what a query says about TLS: files, in PEM.
type Encryption struct {
	CA   string // certificates of the authorities to trust; empty for the system's
	Cert string // the client's certificate; empty for none
	Key  string // of Cert
}

// Config returns the TLS settings of connections if on is set, and nil otherwise. Files would mean nothing without
// encryption, so they are an error then, in which how says what to write. It reads the files, and returns their errors.
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
	// One without the other would connect without a client certificate, and only the server would say so.
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
