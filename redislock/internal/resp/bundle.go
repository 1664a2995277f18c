package resp

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// mostBundled is how many requests one run of the script takes at most: while it runs, the server does nothing else.
const mostBundled = 16

const (
	// mostAhead is how many commands with plain requests are sent while their answers are awaited. What comes meanwhile
	// is gathered: the server has work, and the longer the bundles the less of it.
	mostAhead = 2

	// longTrip is how long answers may take for that. A server that is farther away is not waited for.
	longTrip = time.Millisecond
)

// ErrAlone is the answer to requests whose bundle the server did not run. Each is to be sent by itself. It counts as an
// answer of the server: the connection is all right.
const ErrAlone = ServerError("ALONE the bundle was not run")

// neverSent is where in what a Conn sends a request begins that is not in it yet.
const neverSent = math.MaxUint64

// Sending is how a call is sent.
type Sending int

const (
	ByName   Sending = iota // the script by its name, in a bundle with others where that can be
	Alone                   // by its name, and not in a bundle
	InSource                // by its source
)

// bundle gathers plain requests that are to be sent one after the other, and have not been: they are one run of
// a script then. The Conn's mu guards it.
type bundle struct {
	of     *conn.Bundle // which requests, and the script that runs them; nil for none
	on     bool         // the server may run that
	taught bool         // and was sent the source, or is with what is sent next

	ahead int           // commands that were sent and not answered
	trip  time.Duration // how long answers have taken of late

	n          int    // how many there are: the last ones of the Conn's queue
	script     string // the name of the last one's script
	kinds      []byte // a letter for each
	keys, args []byte // theirs, as they are sent
	keyc, argc int    // how many these are
}

// kindOf returns the letter for a request in a bundle, or 0 if it cannot be in one.
func (b *bundle) kindOf(call *conn.Call, how Sending) byte {
	if !b.on || how != ByName {
		return 0
	}
	return b.of.Letter(call)
}

func (b *bundle) add(kind byte, call *conn.Call) {
	b.n++
	b.script = call.Script.SHA()
	b.kinds = append(b.kinds, kind)
	for _, key := range call.Keys {
		b.keys = appendText(b.keys, key)
	}
	for _, arg := range call.Args {
		b.args = appendText(b.args, arg)
	}
	b.keyc += len(call.Keys)
	b.argc += len(call.Args)
}

// appendTo appends the command for all that was gathered, and forgets it.
func (b *bundle) appendTo(out []byte) []byte {
	script, kinds := b.script, b.kinds
	if b.n == 1 {
		kinds = nil // it is the request itself
	} else {
		script = b.of.Script.SHA()
	}
	argc := 3 + b.keyc + b.argc
	if kinds != nil {
		argc++
	}
	out = appendText(appendText(appendCount(out, '*', argc), "EVALSHA"), script)
	out = append(appendText(out, strconv.Itoa(b.keyc)), b.keys...)
	if kinds != nil {
		out = appendText(out, kinds)
	}
	out = append(out, b.args...)
	b.n, b.keyc, b.argc, b.kinds, b.keys, b.args = 0, 0, 0, b.kinds[:0], b.keys[:0], b.args[:0]
	return out
}

// appendLesson appends a run of the script for no request at all. A server does nothing else while it compiles a script
// and while it runs one: in the same run that would be for as long as both take.
func (b *bundle) appendLesson(out []byte) []byte {
	b.taught = true
	out = appendText(appendText(appendCount(out, '*', 4), "EVAL"), b.of.Script.Source())
	return appendText(appendText(out, "0"), "")
}

// bundle adds a request to those that are gathered. It is called under mu.
func (c *Conn) bundle(kind byte, call *conn.Call) *request {
	p := c.newRequest()
	c.gathered.add(kind, call)
	c.add(p, neverSent)
	if c.gathered.n == mostBundled {
		c.seal()
		c.full = true
	}
	return p
}

// seal makes a command of what was gathered. Whoever writes to out calls it before: answers come in the order of
// commands. It is called under mu.
func (c *Conn) seal() {
	n := c.gathered.n
	if n == 0 {
		return
	}
	first := c.queue.at(c.queue.n - n)
	if n > 1 && !c.gathered.taught {
		c.out = c.gathered.appendLesson(c.out)
		first.taught = true
		first.left++
		c.owed++
	}
	c.out = c.gathered.appendTo(c.out)
	for i := c.queue.n - n; i < c.queue.n; i++ {
		c.queue.at(i).first = c.sent + uint64(len(c.out))
	}
	first.bundled, first.sealed = n, time.Now()
	c.gathered.ahead++
}

// waits reports whether more is to be gathered before it is sent.
func (b *bundle) waits() bool { return b.ahead >= mostAhead && b.trip < longTrip }

// isAnswered is told when a command that began to be sent at the given instant is answered.
func (b *bundle) isAnswered(sealed time.Time) {
	b.ahead--
	b.trip = (3*b.trip + time.Since(sealed)) / 4
}

// unbundle gives the answers to the n requests of a bundle to those who have made them. It is called under mu.
func (c *Conn) unbundle(n int, m []byte, ready []*request) ([]*request, error) {
	if m[0] != '*' {
		return c.unbundleError(n, m, ready)
	}
	count, rest, err := decodeHeader(m)
	if err != nil || count != n {
		return ready, errProtocol
	}
	for range n {
		size, _ := new(scanner).message(rest) // cannot fail: the list was there in full
		p := c.queue.front()
		if !p.given {
			if p.text, p.err = decodeText(rest[:size]); errors.Is(p.err, errProtocol) {
				return ready, p.err
			}
		}
		ready, rest = c.count(p, ready), rest[size:]
	}
	return ready, nil
}

// unbundleError is for a bundle that was answered with one error, which all of its requests get; those that may go by
// themselves are told so instead.
func (c *Conn) unbundleError(n int, m []byte, ready []*request) ([]*request, error) {
	_, err := decode(m)
	var refusal ServerError
	if !errors.As(err, &refusal) {
		return ready, errProtocol
	}
	switch text := string(refusal); {
	case conn.InScript(text): // some of it may have run
	case strings.HasPrefix(text, "NOSCRIPT "):
		c.gathered.taught = false
		err = ErrAlone
	case strings.HasPrefix(text, "NOPERM "):
		// of one of them, and not the right to run scripts by their source
		c.gathered.on = strings.Contains(text, " key")
		err = ErrAlone
	case strings.Contains(text, "same slot"): // CROSSSLOT: a proxy that looks like one server has several behind it
		c.gathered.on = false
		err = ErrAlone
	}
	for range n {
		p := c.queue.front()
		p.err = err
		ready = c.count(p, ready)
	}
	return ready, nil
}
