package servers

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// RedisError is an error that a Redis has answered, as in "ERR unknown command".
type RedisError string

func (e RedisError) Error() string { return string(e) }

// RedisConn is one connection to a Redis, in version 2 of its protocol. One goroutine may use it at a time. After an
// error other than a [RedisError] it is of no use any more.
type RedisConn struct {
	conn net.Conn
	in   *bufio.Reader
}

// DialRedis connects to a Redis, with TLS if config is not nil. The connection is not authenticated.
func DialRedis(ctx context.Context, addr string, config *tls.Config) (*RedisConn, error) {
	var conn net.Conn
	var err error
	if config == nil {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", addr)
	} else {
		conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	return &RedisConn{conn: conn, in: bufio.NewReader(conn)}, nil
}

// Close ends the connection.
func (c *RedisConn) Close() error { return c.conn.Close() }

// Do sends one command and returns its reply: a string, an int64, nil, or a []any of these. An error that is the reply
// is returned as a [RedisError]; within an array it is an element. Do returns when ctx ends.
func (c *RedisConn) Do(ctx context.Context, args ...string) (any, error) {
	if err := c.Send(ctx, args...); err != nil {
		return nil, err
	}
	return c.Receive(ctx)
}

// Send sends one command and does not wait for its reply.
func (c *RedisConn) Send(ctx context.Context, args ...string) error {
	defer c.bound(ctx)()
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	_, err := io.WriteString(c.conn, b.String())
	return because(ctx, err)
}

// Receive returns the next reply, as Do does, or the next message of a subscription.
func (c *RedisConn) Receive(ctx context.Context) (any, error) {
	defer c.bound(ctx)()
	v, err := ReadRedisValue(c.in)
	if err != nil {
		return nil, because(ctx, err)
	}
	reply, err := v.plain()
	if refused, ok := reply.(RedisError); ok {
		return nil, refused
	}
	return reply, err
}

// bound makes what waits on the connection return when ctx ends, until the function that it returns is called.
func (c *RedisConn) bound(ctx context.Context) (release func()) {
	_ = c.conn.SetDeadline(time.Time{}) // an error would come back from the next read or write
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = c.conn.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done // otherwise the deadline could still be set in the next command's time
		}
	}
}

// because returns the end of ctx instead of the time-out by which it showed.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
