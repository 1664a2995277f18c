package register

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
)

// ErrStale says that the fence has refused the request.
var ErrStale = errors.New("refused by the fence")

// Client is one connection to a register. One goroutine may use it at a time.
type Client struct {
	c   net.Conn
	in  *json.Decoder
	out *json.Encoder
}

// Dial connects to the register at addr.
func Dial(ctx context.Context, addr string) (*Client, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Client{c: c, in: json.NewDecoder(bufio.NewReader(c)), out: json.NewEncoder(c)}, nil
}

// Do sends one read or write and returns the number that is there after it.
func (c *Client) Do(e Entry) (int, error) {
	return c.ask(request{Entry: e})
}

// Announce tells the run that the process is about to end something, and returns when the run is prepared for that.
func (c *Client) Announce(proc int, what Ending) error {
	_, err := c.ask(request{Entry: Entry{Proc: proc}, Ends: what})
	return err
}

func (c *Client) ask(r request) (int, error) {
	if err := c.out.Encode(r); err != nil {
		return 0, err
	}
	var a answer
	if err := c.in.Decode(&a); err != nil {
		return 0, err
	}
	switch {
	case a.Err != "":
		return 0, fmt.Errorf("the register: %s", a.Err)
	case a.Stale:
		return a.Value, ErrStale
	}
	return a.Value, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.c.Close() }
