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

// Options say how to connect.
type Options struct {
	TLS        *tls.Config // nil for none
	Username   string      // empty is "default"
	Password   string      // empty is none
	DB         int
	ClientName string
	Dialer     net.Dialer

	// Bundle says which calls may share a run of a script; nil for none.
	Bundle *conn.Bundle
}

// Dial connects to a server. Its errors do not contain the password. If the server cannot be reached there is a
// *net.OpError in it whose Op is "dial", and if it is too old ErrNoRESP3.
func Dial(
	ctx context.Context, addr string, o *Options, pushed func(kind, channel, message string),
) (*Conn, conn.Greeting, error) {
	c, err := connect(ctx, addr, o, pushed)
	if err != nil {
		return nil, conn.Greeting{}, err
	}
	g, err := c.greet(ctx, o)
	if err != nil {
		c.Close()
		return nil, conn.Greeting{}, o.redact(err)
	}
	return c, g, nil
}

func connect(
	ctx context.Context, addr string, o *Options, pushed func(kind, channel, message string),
) (*Conn, error) {
	tcp, err := o.Dialer.DialContext(ctx, "tcp", addr)
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
