package redislock

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

// errNoRESP3 says that a server does not speak RESP3: one before Redis 6, or a proxy.
var errNoRESP3 = errors.New("the server does not speak RESP3")

// wireOptions say how to connect.
type wireOptions struct {
	TLS        *tls.Config // nil for none
	Username   string      // empty is "default"
	Password   string      // empty is none
	DB         int
	ClientName string
	Dialer     net.Dialer
}

// dialWire connects to a server. Its errors do not contain the password. If the server cannot be reached there is a
// *net.OpError in it whose Op is "dial", and if it is too old errNoRESP3.
func dialWire(
	ctx context.Context, addr string, o *wireOptions, heard func(kind, channel, message string),
) (*wire, conn.Greeting, error) {
	w, err := connectWire(ctx, addr, o, heard)
	if err != nil {
		return nil, conn.Greeting{}, err
	}
	g, err := w.greet(ctx, o)
	if err != nil {
		w.Close()
		return nil, conn.Greeting{}, o.redact(err)
	}
	return w, g, nil
}

func connectWire(
	ctx context.Context, addr string, o *wireOptions, heard func(kind, channel, message string),
) (*wire, error) {
	tcp, err := o.Dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	raw := &wireSocket{Conn: tcp, raw: newRawIO(tcp)}
	if o.TLS == nil {
		return newWire(raw, raw, heard), nil
	}
	config := o.TLS.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr) // cannot fail: it was dialled
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // nothing was sent
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: raw.RemoteAddr(), Err: err}
	}
	return newWire(conn, raw, heard), nil
}

// greet says who we are and asks who the server is.
func (w *wire) greet(ctx context.Context, o *wireOptions) (conn.Greeting, error) {
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
	said, err := w.do(ctx, hello...)
	if err != nil {
		return conn.Greeting{}, helloError(err)
	}
	if o.DB != 0 {
		if _, err := w.do(ctx, "SELECT", strconv.Itoa(o.DB)); err != nil {
			return conn.Greeting{}, fmt.Errorf("database %d: %w", o.DB, err)
		}
	}
	g, is := conn.ReadGreeting(said)
	switch {
	case !is:
		return g, errProtocol
	case !g.RESP3:
		return g, errNoRESP3
	}
	return g, nil
}

// helloError reads an error that HELLO was answered with. A server that does not know it repeats what it was sent, with
// the password, so nothing of that is kept.
func helloError(err error) error {
	var refusal serverError
	if !errors.As(err, &refusal) {
		return err
	}
	switch code, _, _ := strings.Cut(string(refusal), " "); code {
	case "ERR", "NOPROTO":
		return errNoRESP3
	}
	return err
}

// redact takes the password out of an error, should a server have put it there.
func (o *wireOptions) redact(err error) error {
	if o.Password == "" || !strings.Contains(err.Error(), o.Password) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), o.Password, "(the password)"))
}
