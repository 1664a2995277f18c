package redislock

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"

	"github.com/redis/rueidis"
)

var _ rueidisCarrier = (*wire)(nil)

// errNoAddress says that the client knows no server.
var errNoAddress = errors.New("no server is known to be the primary")

// wireOptionsOf returns how to connect as a client does that was made with o, by what a URL can set.
func wireOptionsOf(o *rueidis.ClientOption) *wireOptions {
	w := &wireOptions{
		Username: o.Username, Password: o.Password, DB: o.SelectDB, ClientName: o.ClientName, Dialer: o.Dialer,
	}
	if o.TLSConfig != nil {
		w.TLS = o.TLSConfig.Clone()
		w.TLS.MinVersion = max(w.TLS.MinVersion, tls.VersionTLS12)
	}
	return w
}

// openWire makes a link over a wire. It returns errNoRESP3 if the server is too old for that.
func (n *rueidisNode) openWire(ctx context.Context) (*rueidisLink, error) {
	ctx, cancel := context.WithTimeout(ctx, rueidisGreeting)
	defer cancel()
	c := n.conn
	l := newRueidisLink(n, c.peers()) // asked before: if they change meanwhile, the link counts as outdated
	addr := n.addr
	if addr == "" {
		if len(l.peers) == 0 {
			return nil, errNoAddress
		}
		addr = l.peers[0] // a client of a URL reads from no replicas, so there is one
	}
	w, g, err := dialWire(ctx, addr, c.wires, l.heard)
	if err != nil {
		return nil, err
	}
	if err := g.Suits(c.cluster); err != nil {
		w.Close()
		return nil, err
	}
	if c.cluster { // for what goes over the client: WAIT, and the list of nodes
		c.spawn(func() { _, _ = c.introduce(c.base, addr, uint16(n.slot.Load())) }) // ends when rueidis has asked
	}
	w.gathered.on = !c.cluster // before anybody else knows the wire
	l.number = Link(c.links.Add(1))
	l.wire, l.carrier, l.broken = w, w, w.closed
	if err := w.subscribe(ctx, "subscribe", c.channel); err != nil {
		w.Close()
		return nil, err
	}
	return l, nil
}

// heard takes what a wire is sent without being asked.
func (l *rueidisLink) heard(kind, channel, message string) {
	switch kind {
	case "message", "smessage":
		l.pushed(channel, message)
	case "ssubscribe", "sunsubscribe":
		l.subscribed(kind, channel)
	}
}

// pipeline runs jobs that nobody else's commands come between.
func (w *wire) pipeline(ctx context.Context, jobs []*rueidisJob) []rueidisText {
	asking, room := 0, 0
	for _, j := range jobs {
		room += callRoom(j.call)
		if j.try.asking != "" {
			asking++
		}
	}
	answers, err := w.together(ctx, len(jobs)+asking, func(out []byte) []byte {
		out = slices.Grow(out, room) // renewals of very many holds are megabytes, which to grow step by step would copy again and again
		eachJob(jobs, func(j *rueidisJob, source bool) {
			if j.try.asking != "" {
				out = appendCommand(out, "ASKING")
			}
			out = appendCall(out, j.call, source)
		})
		return out
	})
	if err != nil {
		return failures(len(jobs), err)
	}
	texts := make([]rueidisText, len(jobs))
	for i, next := 0, 0; i < len(jobs); i++ {
		if jobs[i].try.asking != "" {
			next++
		}
		texts[i] = answers[next].text()
		next++
	}
	return texts
}

// text returns the answer to a script.
func (a wireAnswer) text() rueidisText {
	text, isText := a.value.(string)
	switch {
	case a.err != nil:
		return rueidisText{"", a.err}
	case !isText:
		return rueidisText{"", errNoText}
	}
	return rueidisText{text, nil}
}

// ping returns nil if there was an answer.
func (w *wire) ping(ctx context.Context) error {
	if _, err := w.do(ctx, "PING"); !isAnswer(err) {
		return err
	}
	return nil
}
