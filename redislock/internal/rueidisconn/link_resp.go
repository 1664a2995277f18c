package rueidisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

var _ carrier = (*resp.Conn)(nil)

// errNoAddress says that the client knows no server.
var errNoAddress = errors.New("no server is known to be the primary")

// respOptions returns how a link connects that does not use the client which is made with o, or nil
// if there is no such way.
func respOptions(o *rueidis.ClientOption, b *conn.Bundle) *resp.Options {
	if o.AlwaysRESP2 {
		return nil
	}
	w := &resp.Options{
		Username: o.Username, Password: o.Password, DB: o.SelectDB, ClientName: o.ClientName, Dialer: o.Dialer,
		Bundle: b,
	}
	if ask := o.AuthCredentialsFn; ask != nil {
		w.Credentials = func(server net.Addr) (user, password string, err error) {
			said, err := ask(rueidis.AuthCredentialsContext{Address: server})
			return said.Username, said.Password, err
		}
	}
	var config *tls.Config
	if o.TLSConfig != nil {
		config = o.TLSConfig.Clone()
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	}
	if custom := dialerOf(o); custom != nil { // which encrypts by itself
		w.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return custom(ctx, addr, &o.Dialer, config)
		}
	} else {
		w.TLS = config
	}
	return w
}

// own reports whether a link of its own can be had, after one could not be made: the others are
// connections of the client.
func own(err error) bool {
	return !errors.Is(err, resp.ErrNoRESP3) && !errors.Is(err, resp.ErrNotPlain)
}

// openResp makes a link over a connection of package resp. See [own] for its errors.
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
