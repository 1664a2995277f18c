package play

import (
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// mostWire is how much of what goes over the wire in one act a story keeps.
const mostWire = 250

// tap is where what goes over the wire is written down. It has a mutex of its own, so that clients never wait while the
// lab looks at its servers.
type tap struct {
	mu  sync.Mutex
	act *story.Act // that is played; nil when the play is over
}

// turn has the next act written down from now on.
func (t *tap) turn(a *story.Act) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.act = a
}

// listener hears one client and one server, in the act in which it began.
type listener struct {
	p       *Play
	act     *story.Act
	who, to string
}

// heard writes down what a client has sent, or a server has said by itself. It returns nil if that is not kept.
func (l *listener) heard(push bool, text string) *story.Wire {
	t := &l.p.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.act != l.act || !l.act.Sound {
		return nil
	}
	if len(l.act.Wire) == mostWire {
		l.act.Unsaid++
		return nil
	}
	w := &story.Wire{At: time.Since(l.p.began), Who: l.who, To: l.to, Push: push, Text: text}
	l.act.Wire = append(l.act.Wire, w)
	return w
}

// renamed changes a word of what was written down, such as a name that was not known then.
func (l *listener) renamed(from, to string) {
	t := &l.p.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.act == l.act {
		for _, w := range l.act.Wire {
			w.Text = strings.Replace(w.Text, from, to, 1)
		}
	}
}

// answered adds the answer to what heard returned.
func (l *listener) answered(w *story.Wire, text string) {
	t := &l.p.tap
	t.mu.Lock()
	defer t.mu.Unlock()
	if w != nil && t.act == l.act {
		w.Answer = text
	}
}

// talk is one connection, whose protocol it understands: requests and replies as bytes come in, in any pieces.
type talk interface {
	asks(b []byte)
	says(b []byte)
}

// Tap returns the URL of an engine by way of the lab, which writes down what the client sends and hears in this act, if
// that is one of the sound lock. In others it learns the names of scripts.
func (p *Play) Tap(who, url string) string {
	p.Helper()
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || p.now() == nil {
		return url
	}
	begin, tail := "", ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest, tail = rest[:i], rest[i:]
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		begin, rest = rest[:i+1], rest[i+1:]
	}
	hosts := strings.Split(rest, ",")
	for i, addr := range hosts {
		to := engine(scheme)
		if to == story.AllNodes {
			to = "node " + string(rune('1'+i))
		}
		hosts[i] = p.between(who, to, addr)
	}
	return scheme + "://" + begin + strings.Join(hosts, ",") + tail
}

// engine is what serves a scheme, as the picture names it.
func engine(scheme string) string {
	switch scheme {
	case "redlock":
		return story.AllNodes
	case "zk":
		return "ZooKeeper"
	case "mysql":
		return "MariaDB"
	default:
		return "Redis"
	}
}

// tapDSN is Tap for a database, as database/sql opens it.
func (p *Play) tapDSN(who, dsn string) string {
	p.Helper()
	begin, rest, ok := strings.Cut(dsn, "@tcp(")
	addr, end, closed := strings.Cut(rest, ")")
	if !ok || !closed || p.now() == nil {
		return dsn
	}
	return begin + "@tcp(" + p.between(who, "MariaDB", addr) + ")" + end
}

// between puts a proxy before a server, and returns its address.
func (p *Play) between(who, to, addr string) string {
	p.Helper()
	l := &listener{p: p, act: p.now(), who: who, to: to}
	var mu sync.Mutex // guards talks
	talks := map[int64]talk{}
	proxy := servers.NewProxy(p, addr)
	proxy.Tap(func(connection int64, d servers.Direction, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if talks[connection] == nil {
			talks[connection] = l.listen()
		}
		if d == servers.ToServer {
			talks[connection].asks(b)
		} else {
			talks[connection].says(b)
		}
	})
	return proxy.Addr()
}

// listen begins to listen to a connection.
func (l *listener) listen() talk {
	switch l.to {
	case "ZooKeeper":
		return &zooTalk{listener: l, asked: map[int32]asked{}}
	case "MariaDB":
		return &sqlTalk{listener: l, prepared: map[uint32]string{}}
	default:
		return &redisTalk{listener: l}
	}
}

// How much is told of a command, a statement, an answer, and one word.
const (
	longestCommand   = 400
	longestStatement = 900 // one takes a lock on MariaDB, and says it at its end
	longestAnswer    = 160
	longestWord      = 60
)

// shorten cuts what is too long, between two characters.
func shorten(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-1]) + "…"
}
