// Links over connections of our own (package resp). node.go tries these first; link.go has those over rueidis.

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

// respOptions returns how a link connects without the client that is made with o, or nil if that is not possible: resp
// needs RESP3.
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
	if custom := dialerOf(o); custom != nil { // a custom dialer encrypts by itself
		w.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return custom(ctx, addr, &o.Dialer, config)
		}
	} else {
		w.TLS = config
	}
	return w
}

// mayBeOurs reports whether links of our own are possible, after one could not be made with err. If not, links are
// connections of the client.
func mayBeOurs(err error) bool {
	return !errors.Is(err, resp.ErrNoRESP3) && !errors.Is(err, resp.ErrNotPlain)
}

// openResp makes a link over a connection of package resp. See [mayBeOurs] for its errors.
func (n *node) openResp(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, greetingTime)
	defer cancel()
	c := n.conn
	l := newLink(n, c.peers()) // asked before connecting: if they change meanwhile, the link counts as outdated
	addr := n.addr
	if addr == "" {
		if len(l.peers) == 0 {
			return nil, errNoAddress
		}
		addr = l.peers[0] // the client of a URL reads from no replicas, so there is one
	}
	options := *c.respOpts
	if c.cluster {
		options.Bundle = nil // a run in a Cluster must not have keys of several slots
	}
	w, g, err := resp.Dial(ctx, addr, &options, l.notified)
	if err != nil {
		return nil, err
	}
	if err := c.suits(ctx, g); err != nil {
		w.Close()
		return nil, err
	}
	// The client will need the node for WAIT and for the list of nodes, and asking now is not in any call's time.
	if c.cluster {
		c.spawn(func() { _, _ = c.introduce(c.base, addr, uint16(n.slot.Load())) }) // ends when rueidis has asked
	}
	l.number = conn.Link(c.links.Add(1))
	l.resp, l.carrier, l.broken = w, w, w.Done()
	// Before the link is given to anybody, so that no grant can be pushed to a link that does not listen.
	if err := w.Subscribe(ctx, "subscribe", c.channel); err != nil {
		w.Close()
		return nil, err
	}
	return l, nil
}

// notified handles what such a link is sent without being asked. The reading goroutine calls it.
func (l *link) notified(kind, channel, message string) {
	switch kind {
	case "message", "smessage":
		l.pushed(channel, message)
	case "ssubscribe", "sunsubscribe":
		l.subscribed(kind, channel)
	}
}
