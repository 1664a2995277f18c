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

// ErrNotPlain says that [Options].Dial has made a connection that is none of the system's: TLS, or another wrapper.
// What a write on it has sent by its deadline is not known, so it cannot be used here.
var ErrNotPlain = errors.New("the connection is neither a *net.TCPConn nor a *net.UnixConn")

// Options say how to connect.
type Options struct {
	TLS        *tls.Config // nil for none
	Username   string      // empty is "default"
	Password   string      // empty is none
	DB         int         // of SELECT
	ClientName string      // what CLIENT LIST shows; empty is none
	Dialer     net.Dialer  // of the connections

	// Dial, if not nil, makes the connections instead of Dialer. TLS is nil then.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Credentials, if not nil, are asked for user and password at each connection. They may block
	// for as long as they like.
	Credentials func(server net.Addr) (user, password string, err error)

	// Bundle says which calls may share a run of a script; nil for none.
	Bundle *conn.Bundle
}

// Dial connects to a server. Its errors do not contain the password. If the server cannot be reached there is a
// *net.OpError in it whose Op is "dial", and if it is too old ErrNoRESP3. Errors of o.Dial are as they are.
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

// withCredentials returns the options with what user and password are now.
func (o *Options) withCredentials(ctx context.Context, c *Conn) (*Options, error) {
	if o.Credentials == nil {
		return o, nil
	}
	as := *o
	asked := make(chan error, 1) // buffered, so that nobody need wait for it
	go func() {                  // ends with the user's function, which knows no context
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
		config.ServerName, _, _ = net.SplitHostPort(addr) // cannot fail: it was dialled
	}
	encrypted := tls.Client(raw, config)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // nothing was sent
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

// greet says who we are and asks who the server is.
func (c *Conn) greet(ctx context.Context, o *Options) (conn.Greeting, error) {
	hello := []string{"HELLO", "3"}
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

// helloError reads an error that HELLO was answered with. A server that does not know it repeats what it was sent, with
// the password, so nothing of that is kept.
func helloError(err error) error {
	var refusal ServerError
	if !errors.As(err, &refusal) {
		return err
	}
	if conn.JudgeAnswer(string(refusal), "").Verdict == conn.Later { // it lets nobody else connect for the moment
		return err
	}
	switch code, _, _ := strings.Cut(string(refusal), " "); code {
	case "ERR", "NOPROTO":
		return ErrNoRESP3
	}
	return err
}

// redact takes the password out of an error, should a server have put it there.
func (o *Options) redact(err error) error {
	if o.Password == "" || !strings.Contains(err.Error(), o.Password) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), o.Password, "(the password)"))
}
