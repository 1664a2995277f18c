// Package register is the resource that the tortured locks protect: for each name a number that a holder reads, and
// writes back one larger. It lives in the coordinator, so it never fails, and it logs each read and write in the order
// in which they took effect, so a lost reply blurs no verdict.
//
// Each name has two numbers. The fenced one refuses who was overtaken, by the rule of package fence. The plain
// one takes everything, as most resources do: it is the control. A run in which nothing of it is lost has
// proved nothing of the other.
package register

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/interlock-go/interlock/torture/history"
)

// LogFile is the name of the log in a run's folder.
const LogFile = "register.jsonl"

// Entry is one line of the log: one read or write of one of the two numbers.
type Entry struct {
	At     history.Instant `json:"t"`
	Proc   int             `json:"proc"`
	Gor    int             `json:"gor"`
	Seq    int             `json:"seq"`
	Write  bool            `json:"write,omitempty"`
	Fenced bool            `json:"fenced,omitempty"`
	Shared bool            `json:"shared,omitempty"` // of a reader, who writes nothing
	Name   string          `json:"name"`
	Token  uint64          `json:"token"`
	Nonce  string          `json:"nonce"`
	Before int             `json:"before"`          // the number when the request arrived
	Value  int             `json:"value"`           // the number to be written, or that was read
	Stale  bool            `json:"stale,omitempty"` // refused: the number is still Before
}

// Ending is what a process is about to ask of the engine that ends something.
type Ending string

// The endings.
const (
	Releases  Ending = "releases"  // a hold is given back
	Converts  Ending = "converts"  // a hold changes its mode
	Withdraws Ending = "withdraws" // who waits gives up
)

// request is what a client sends, and answer what it gets: a line of JSON each.
type request struct {
	Entry
	Ends Ending `json:"ends,omitempty"` // it touches nothing, and announces that
}

type answer struct {
	Value int    `json:"value"`
	Stale bool   `json:"stale,omitempty"`
	Err   string `json:"err,omitempty"`
}

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
