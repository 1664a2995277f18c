// Bundles: plain requests of several goroutines that become one run of a script (docs/rationale.md, Bundles). call.go
// adds requests, write.go decides when what was gathered is sent, read.go hands the answers here. conn.Bundle says
// which requests these are.

package resp

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// mostBundled is how many requests one run takes at most. While it runs, some 60 microseconds, the server does nothing
// else.
const mostBundled = 16

const (
	// mostAhead is how many commands with plain requests may be sent while their answers are awaited. What comes
	// meanwhile is gathered: the server has work anyway, and longer bundles cost it less.
	mostAhead = 2

	// longTrip is the longest trip for which that is done. A server that is farther away would be idle meanwhile.
	longTrip = time.Millisecond
)

// ErrAlone is the answer to requests whose bundle the server did not run; each must be sent by itself. It has the form
// of a server's answer: the connection is sound.
const ErrAlone = ServerError("ALONE the bundle was not run")

// neverSent is the position of a request that is not in what the Conn sends yet. It is larger than any number of sent
// bytes.
const neverSent = math.MaxUint64

// Sending says how a call is sent.
type Sending int

const (
	ByName   Sending = iota // the script by its name, in a bundle with others if possible
	Alone                   // by its name, and not in a bundle
	InSource                // by its source
)

// bundle gathers plain requests that were made one after the other and are not sent yet. They become one command. The
// Conn's mu guards it.
type bundle struct {
	of     *conn.Bundle // which requests, and the script that runs them; nil for none
	on     bool         // the server accepts bundles, as far as is known
	taught bool         // the server has the source, or gets it with what is sent next

	ahead int           // commands that were sent and are not answered
	trip  time.Duration // how long answers take, as a moving average

	n          int    // how many requests: the last n of the Conn's queue
	script     string // the name of the last one's own script, for a bundle of one
	kinds      []byte // a letter for each
	keys, args []byte // theirs, already in the form in which they are sent
	keyc, argc int    // how many keys and arguments these are
}

// kindOf returns the letter of a request in a bundle, or 0 if it cannot be in one.
func (b *bundle) kindOf(call *conn.Call, how Sending) byte {
	if !b.on || how != ByName {
		return 0
	}
	return b.of.Letter(call)
}

// add gathers a request. Its texts are encoded now, so that the call need not be kept.
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

// appendTo appends the command for all that was gathered, and empties b. A single request is sent as its own script,
// which costs the server less.
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

// appendLesson appends a run of the bundle's script for no request at all, by its source. The server does nothing else
// while it compiles a script and while it runs one. In one run with requests it would be busy for as long as both take.
func (b *bundle) appendLesson(out []byte) []byte {
	b.taught = true
	out = appendText(appendText(appendCount(out, '*', 4), "EVAL"), b.of.Script.Source())
	return appendText(appendText(out, "0"), "")
}

// bundle adds a request to those that are gathered. A full bundle is sealed at once, and marked so that write.go does
// not hold it back. The caller holds mu.
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

// seal makes a command of what was gathered. Everything that appends to out calls it first, because answers come in the
// order of the commands. The caller holds mu.
func (c *Conn) seal() {
	n := c.gathered.n
	if n == 0 {
		return
	}
	first := c.queue.at(c.queue.n - n)
	// The lesson has an answer of its own, so the first request expects one more.
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

// waits reports whether more should be gathered before it is sent.
func (b *bundle) waits() bool { return b.ahead >= mostAhead && b.trip < longTrip }

// isAnswered records that a command that was sealed at that instant has its answer. The newest trip counts a quarter.
func (b *bundle) isAnswered(sealed time.Time) {
	b.ahead--
	b.trip = (3*b.trip + time.Since(sealed)) / 4
}

// unbundle gives the answers of a bundle to its n requests, which are the first of the queue. A count that differs is
// an error of protocol: nobody knows whose answers these are. The caller holds mu.
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
		if !p.given { // else nobody waits for it any more, but it counts
			if p.text, p.err = decodeText(rest[:size]); errors.Is(p.err, errProtocol) {
				return ready, p.err
			}
		}
		ready, rest = c.count(p, ready), rest[size:]
	}
	return ready, nil
}

// unbundleError handles a bundle that was answered with a single error. All its requests get that error, or ErrAlone if
// the bundle has not run and they may be tried by themselves.
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
	// It is the right to one of the keys, which says nothing of the others' keys, or the right to run scripts by their
	// source.
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
