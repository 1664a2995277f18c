package rueidisconn

import (
	"context"
	"crypto/tls"
	"errors"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

var _ carrier = (*resp.Conn)(nil)

// errNoAddress says that the client knows no server.
var errNoAddress = errors.New("no server is known to be the primary")

// LinkAs has the Conn make its links by itself instead of over the client, which was made with o. It is called before
// Start.
func (c *Conn) LinkAs(o *rueidis.ClientOption, b *conn.Bundle) { c.itself = respOptions(o, b) }

// respOptions returns how to connect as a client does that was made with o, by what a URL can set.
func respOptions(o *rueidis.ClientOption, b *conn.Bundle) *resp.Options {
	w := &resp.Options{
		Username: o.Username, Password: o.Password, DB: o.SelectDB, ClientName: o.ClientName, Dialer: o.Dialer,
		Bundle: b,
	}
	if o.TLSConfig != nil {
		w.TLS = o.TLSConfig.Clone()
		w.TLS.MinVersion = max(w.TLS.MinVersion, tls.VersionTLS12)
	}
	return w
}

// openResp makes a link over a connection of package resp. It returns resp.ErrNoRESP3 if the server is too old for
// that.
func (n *node) openResp(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	c := n.conn
	l := newLink(n, c.peers()) // asked before: if they change meanwhile, the link counts as outdated
	addr := n.addr
	if addr == "" {
		if len(l.peers) == 0 {
			return nil, errNoAddress
		}
		addr = l.peers[0] // a client of a URL reads from no replicas, so there is one
	}
	options := *c.itself
	if c.cluster {
		options.Bundle = nil // its scripts must not have keys of several slots
	}
	w, g, err := resp.Dial(ctx, addr, &options, l.notified)
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
	l.number = conn.Link(c.links.Add(1))
	l.resp, l.carrier, l.broken = w, w, w.Done()
	if err := w.Subscribe(ctx, "subscribe", c.channel); err != nil {
		w.Close()
		return nil, err
	}
	return l, nil
}

// notified takes what such a link is sent without being asked.
func (l *link) notified(kind, channel, message string) {
	switch kind {
	case "message", "smessage":
		l.pushed(channel, message)
	case "ssubscribe", "sunsubscribe":
		l.subscribed(kind, channel)
	}
}
