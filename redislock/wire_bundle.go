package redislock

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
	// mostAhead is how many commands with plain requests are sent while their answers are awaited. What comes meanwhile is
	// gathered: the server has work, and the longer the bundles the less of it.
	mostAhead = 2

	// longTrip is how long answers may take for that. A server that is farther away is not waited for.
	longTrip = time.Millisecond
)

// errAlone is the answer to requests whose bundle the server did not run. Each is to be sent by itself. It counts as an answer
// of the server: the connection is all right.
const errAlone = serverError("ALONE the bundle was not run")

// neverSent is where in what a wire sends a request begins that is not in it yet.
const neverSent = math.MaxUint64

// sending is how a call is sent.
type sending int

const (
	byName   sending = iota // the script by its name, in a bundle with others where that can be
	alone                   // by its name, and not in a bundle
	inSource                // by its source
)

// wireBundle gathers plain requests that are to be sent one after the other, and have not been: they are one run of
// bundle.lua then. The wire's mu guards it.
type wireBundle struct {
	on     bool // the server may run scripts with keys of several slots
	taught bool // the server was sent the source

	ahead int           // commands that were sent and not answered
	trip  time.Duration // how long answers have taken of late

	n          int    // how many there are: the last ones of the wire's queue
	script     string // the name of the last one's script
	kinds      []byte // a letter for each
	keys, args []byte // theirs, as they are sent
	argc       int    // how many args are
}

// kindOf returns the letter for a request in a bundle, or 0 if it cannot be in one.
func (b *wireBundle) kindOf(c *Call, how sending) byte {
	switch {
	case !b.on || how != byName || len(c.Keys) != 3:
		return 0
	case c.Script == acquireScript && len(c.Args) == 4:
		return 'a'
	case c.Script == releaseScript && len(c.Args) == 1:
		return 'r'
	}
	return 0
}

func (b *wireBundle) add(kind byte, c *Call) {
	b.n++
	b.script = c.Script.SHA()
	b.kinds = append(b.kinds, kind)
	for _, key := range c.Keys {
		b.keys = appendText(b.keys, key)
	}
	for _, arg := range c.Args {
		b.args = appendText(b.args, arg)
	}
	b.argc += len(c.Args)
}

// appendTo appends the command for all that was gathered, and forgets it.
func (b *wireBundle) appendTo(out []byte) []byte {
	name, script, kinds := "EVALSHA", b.script, b.kinds
	if b.n == 1 {
		kinds = nil // it is the request itself
	} else if script = bundleScript.SHA(); !b.taught {
		name, script, b.taught = "EVAL", bundleScript.Source(), true
	}
	argc := 3 + 3*b.n + b.argc
	if kinds != nil {
		argc++
	}
	out = appendText(appendText(appendCount(out, '*', argc), name), script)
	out = append(appendText(out, strconv.Itoa(3*b.n)), b.keys...)
	if kinds != nil {
		out = appendText(out, kinds)
	}
	out = append(out, b.args...)
	b.n, b.argc, b.kinds, b.keys, b.args = 0, 0, b.kinds[:0], b.keys[:0], b.args[:0]
	return out
}

// bundle adds a request to those that are gathered. It is called under mu.
func (w *wire) bundle(kind byte, c *Call) *request {
	p := w.newRequest()
	w.gathered.add(kind, c)
	w.add(p, neverSent)
	if w.gathered.n == mostBundled {
		w.seal()
		w.full = true
	}
	return p
}

// seal makes a command of what was gathered. Whoever writes to out calls it before: answers come in the order of commands.
// It is called under mu.
func (w *wire) seal() {
	n := w.gathered.n
	if n == 0 {
		return
	}
	w.out = w.gathered.appendTo(w.out)
	for i := w.queue.n - n; i < w.queue.n; i++ {
		w.queue.at(i).first = w.sent + uint64(len(w.out))
	}
	first := w.queue.at(w.queue.n - n)
	first.bundled, first.sealed = n, time.Now()
	w.gathered.ahead++
}

// waits reports whether more is to be gathered before it is sent.
func (b *wireBundle) waits() bool { return b.ahead >= mostAhead && b.trip < longTrip }

// isAnswered is told when a command that began to be sent at the given instant is answered.
func (b *wireBundle) isAnswered(sealed time.Time) {
	b.ahead--
	b.trip = (3*b.trip + time.Since(sealed)) / 4
}

// unbundle gives the answers to the n requests of a bundle to those who have made them. It is called under mu.
func (w *wire) unbundle(n int, m []byte, ready []*request) ([]*request, error) {
	if m[0] != '*' {
		return w.unbundleError(n, m, ready)
	}
	count, rest, err := decodeHeader(m)
	if err != nil || count != n {
		return ready, errProtocol
	}
	for range n {
		size, _ := new(scanner).message(rest) // cannot fail: the list was there in full
		p := w.queue.front()
		if !p.given {
			if p.text, p.err = decodeText(rest[:size]); errors.Is(p.err, errProtocol) {
				return ready, p.err
			}
		}
		ready, rest = w.count(p, ready), rest[size:]
	}
	return ready, nil
}

// unbundleError is for a bundle that was answered with one error, which all of its requests get; those that may go by themselves
// are told so instead.
func (w *wire) unbundleError(n int, m []byte, ready []*request) ([]*request, error) {
	_, err := decode(m)
	var refusal serverError
	if !errors.As(err, &refusal) {
		return ready, errProtocol
	}
	switch text := string(refusal); {
	case conn.InScript(text): // some of it may have run
	case strings.HasPrefix(text, "NOSCRIPT "):
		w.gathered.taught = false
		err = errAlone
	case strings.HasPrefix(text, "NOPERM "):
		w.gathered.on = strings.Contains(text, " key") // of one of them, and not the right to run scripts by their source
		err = errAlone
	case strings.Contains(text, "same slot"): // CROSSSLOT: a proxy that looks like one server has several behind it
		w.gathered.on = false
		err = errAlone
	}
	for range n {
		p := w.queue.front()
		p.err = err
		ready = w.count(p, ready)
	}
	return ready, nil
}
