// Connecting: the socket, TLS, credentials, HELLO and SELECT. rueidisconn's link.go calls Dial; conn.go has what it
// returns.

package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/redislock/conn"
)

// ErrNoRESP3 says that a server does not speak RESP3: one before Redis 6, or a proxy.
var ErrNoRESP3 = errors.New("the server does not speak RESP3")

// ErrNotPlain says that [Options].Dial has made a connection that is not the system's own: TLS, or another wrapper. It
// is not known what such a connection has sent when a write ends by its deadline, so it cannot be used here.
var ErrNotPlain = errors.New("the connection is neither a *net.TCPConn nor a *net.UnixConn")

// Options say how to connect. They are not changed.
type Options struct {
	TLS        *tls.Config // nil for none
	Username   string      // empty means "default"
	Password   string      // empty means none
	DB         int         // the database to select
	ClientName string      // what CLIENT LIST shows; empty means none
	Dialer     net.Dialer  // of the connections

	// Dial, if set, makes the connections instead of Dialer. TLS must be nil then.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Credentials, if set, is asked for user and password at each connection. It may block for as long as it likes:
	// Dial does not wait for it beyond its context.
	Credentials func(server net.Addr) (user, password string, err error)

	// Bundle says which calls may share a run of a script; nil means none.
	Bundle *conn.Bundle
}

// Dial connects to a server and greets it. It blocks until then or until ctx ends. Its errors do not contain the
// password. An unreachable server gives an error with a *net.OpError whose Op is "dial", too old a server ErrNoRESP3.
// Errors of o.Dial are returned as they are.
func Dial(
	ctx context.Context, addr string, o *Options, pushed func(kind, channel, message string),
) (*Conn, conn.Greeting, error) {
	c, err := connect(ctx, addr, o, pushed)
	if err != nil {
		return nil, conn.Greeting{}, err
	}
	as, err := o.withCredentials(ctx, c)
	if err != nil {
		c.Close()
		return nil, conn.Greeting{}, err
	}
	g, err := c.greet(ctx, as)
	if err != nil {
		c.Close()
		return nil, conn.Greeting{}, as.redact(err)
	}
	return c, g, nil
}

// withCredentials returns the options with the user and the password of this moment.
func (o *Options) withCredentials(ctx context.Context, c *Conn) (*Options, error) {
	if o.Credentials == nil {
		return o, nil
	}
	as := *o
	asked := make(chan error, 1) // buffered, so that the goroutine ends even if Dial has left
	go func() {                  // ends with the user's function, which has no context
		var err error
		as.Username, as.Password, err = o.Credentials(c.raw.RemoteAddr())
		asked <- err
	}()
	select {
	case err := <-asked:
		return &as, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connect makes the socket, and TLS above it if that is wanted.
func connect(
	ctx context.Context, addr string, o *Options, pushed func(kind, channel, message string),
) (*Conn, error) {
	tcp, err := o.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	raw := &socket{Conn: tcp, raw: newRawIO(tcp)}
	if o.TLS == nil {
		return newConn(raw, raw, o.Bundle, pushed), nil
	}
	config := o.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr) // cannot fail: it was dialed
	}
	encrypted := tls.Client(raw, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // nothing was sent
		// As an error of dialing, because no command was sent: the call may be tried again.
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: raw.RemoteAddr(), Err: err}
	}
	return newConn(encrypted, raw, o.Bundle, pushed), nil
}

// dial makes the connection below TLS.
func (o *Options) dial(ctx context.Context, addr string) (net.Conn, error) {
	if o.Dial == nil {
		return o.Dialer.DialContext(ctx, "tcp", addr)
	}
	c, err := o.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	switch c.(type) {
	case *net.TCPConn, *net.UnixConn:
		return c, nil
	}
	_ = c.Close() // nothing was sent
	return nil, ErrNotPlain
}

// greet introduces this client, with its password if it has one, and asks who the server is. HELLO does all of that in
// one round trip; a database costs one more.
func (c *Conn) greet(ctx context.Context, o *Options) (conn.Greeting, error) {
	hello := []string{"HELLO", "3"}
	// HELLO takes a password only together with a user. Where no users were made, it is the one called default.
	if o.Password != "" {
		user := o.Username
		if user == "" {
			user = "default"
		}
		hello = append(hello, "AUTH", user, o.Password)
	}
	if o.ClientName != "" {
		hello = append(hello, "SETNAME", o.ClientName)
	}
	said, err := c.Do(ctx, hello...)
	if err != nil {
		return conn.Greeting{}, helloError(err)
	}
	if o.DB != 0 {
		if _, err := c.Do(ctx, "SELECT", strconv.Itoa(o.DB)); err != nil {
			return conn.Greeting{}, fmt.Errorf("database %d: %w", o.DB, err)
		}
	}
	g, is := conn.ReadGreeting(said)
	switch {
	case !is:
		return g, errProtocol
	case !g.RESP3:
		return g, ErrNoRESP3
	}
	return g, nil
}

// helloError reads an error with which the server answered HELLO. A server that does not know the command repeats what
// it was sent, including the password, so nothing of that text is kept.
func helloError(err error) error {
	var refusal ServerError
	if !errors.As(err, &refusal) {
		return err
	}
	if conn.JudgeAnswer(string(refusal), "").Verdict == conn.Later { // it accepts no connection for the moment
		return err
	}
	switch code, _, _ := strings.Cut(string(refusal), " "); code {
	case "ERR", "NOPROTO":
		return ErrNoRESP3
	}
	return err
}

// redact removes the password from an error, should a server have put it there.
func (o *Options) redact(err error) error {
	if o.Password == "" || !strings.Contains(err.Error(), o.Password) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), o.Password, "(the password)"))
}
