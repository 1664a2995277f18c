package childproc

import (
	"encoding/json"
	"io"
	"sync"
)

// Conn is one end of the pipes between two processes. Several goroutines may send at once; one at a time receives.
type Conn struct {
	sending sync.Mutex // guards out
	out     *json.Encoder
	in      *json.Decoder
}

// JSON returns an end whose messages are JSON.
func JSON(in io.Reader, out io.Writer) *Conn {
	return &Conn{in: json.NewDecoder(in), out: json.NewEncoder(out)}
}

// Send tells the other end v. It blocks while the pipe is full.
func (c *Conn) Send(v any) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.out.Encode(v)
}

// Receive waits for what the other end says next. The error is io.EOF when it says no more, because it has ended or was
// told to end.
func (c *Conn) Receive(v any) error { return c.in.Decode(v) }
