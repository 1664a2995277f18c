package play

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Link is an actor's connection to one server.
type Link struct {
	actor *Actor
	addr  string
	label string // of the server, where there are several

	mu   sync.Mutex         // guards conn against [Link.replace]; the client itself reads it without
	conn *servers.RedisConn // written by the client only

	differs func(reply any) string // names a reply that differs from run to run; "" if it does not
}

var _ exhibit.Conn = (*Link)(nil)

// Dial connects the client to a Redis. The label tells which, where there are several.
func (a *Actor) Dial(addr, label string) *Link {
	a.p.Helper()
	conn, err := servers.DialRedis(a.p.Context(), addr, nil)
	if err != nil {
		a.p.Fatalf("%s cannot connect to %s: %v", a.name, addr, err)
	}
	l := &Link{actor: a, conn: conn, addr: addr, label: label}
	a.links = append(a.links, l)
	a.p.Cleanup(func() { _ = conn.Close() })
	return l
}

// current returns the connection, for whoever is not the client.
func (l *Link) current() *servers.RedisConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// replace has the client go on with another connection.
func (l *Link) replace(conn *servers.RedisConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
}

// Do sends one command and writes it down, with its answer. This is where a client stands still or dies.
func (l *Link) Do(ctx context.Context, args ...string) (any, error) {
	a := l.actor
	if err := a.gate(args); err != nil {
		return nil, err
	}
	reply, err := l.conn.Do(ctx, args...)
	if a.quiet {
		return reply, err
	}
	a.p.said(a.name, l.said(args, reply, err), l.message(err))
	return reply, err
}

// said is a command and its answer. That none came is told in words: what the system calls it differs.
func (l *Link) said(args []string, reply any, err error) story.Text {
	text := story.Same(Command(args) + "  →  ")
	if l.label != "" {
		text = story.Join(story.Server(l.label), story.T(": ", "："), text)
	}
	if unanswered(err) {
		return story.Join(text, story.T("no answer", "无响应"))
	}
	answer := Answer(reply, err)
	if l.differs != nil && l.differs(reply) != "" {
		answer = story.Volatile(answer, l.differs(reply))
	}
	return story.Join(text, story.Same(answer))
}

// Differs has stories name replies that differ from run to run; the name of others is "".
func (l *Link) Differs(name func(reply any) string) { l.differs = name }

// message is the same as the picture shows it.
func (l *Link) message(err error) *story.Message {
	m := &story.Message{To: l.label, Way: story.Both}
	if l.label == "" {
		m.To = "Redis"
	}
	if unanswered(err) {
		m.Way = story.Lost
	}
	return m
}

// unanswered reports whether no answer came. A refusal is one.
func unanswered(err error) bool {
	refused := servers.RedisError("")
	return err != nil && !errors.As(err, &refused)
}

// Command is a command as a story tells it. Scripts are cut: the exhibit's own text shows them.
func Command(args []string) string {
	words := slices.Clone(args)
	for i, word := range words {
		switch {
		case i == 1 && strings.EqualFold(words[0], "EVAL"):
			words[i] = "<script>"
		case word == "" || strings.ContainsAny(word, " \n"):
			words[i] = fmt.Sprintf("%q", word)
		}
	}
	return strings.Join(words, " ")
}

// Answer is a reply as a story tells it.
func Answer(reply any, err error) string {
	if err != nil {
		return err.Error()
	}
	switch reply := reply.(type) {
	case nil:
		return "(nil)"
	case string:
		return reply
	case []any:
		var all []string
		for _, r := range reply {
			all = append(all, Answer(r, nil))
		}
		return "[" + strings.Join(all, ", ") + "]"
	default:
		return fmt.Sprint(reply)
	}
}

// Must sends a command of the client's own work.
func (l *Link) Must(args ...string) any {
	l.actor.p.Helper()
	reply, err := l.Do(l.actor.p.Context(), args...)
	if err != nil {
		l.actor.p.Fatalf("%s: %s: %v", l.actor.name, Command(args), err)
	}
	return reply
}

// Counted is a link that writes nothing down and counts.
type Counted struct {
	link  *Link
	limit int
	sent  int
	full  func()
}

// Quietly returns a new connection of the same client to the same server whose commands are counted, not told. After
// the limit it calls full.
func (l *Link) Quietly(limit int, full func()) *Counted {
	l.actor.p.Helper()
	fresh := l.actor.p.Actor(l.actor.name).Dial(l.addr, l.label)
	return &Counted{link: fresh, limit: limit, full: full}
}

// Sent returns how many commands were sent.
func (c *Counted) Sent() int { return c.sent }

// Do sends one command.
func (c *Counted) Do(ctx context.Context, args ...string) (any, error) {
	reply, err := c.link.conn.Do(ctx, args...)
	if c.sent++; c.sent == c.limit {
		c.full()
	}
	return reply, err
}

// Short is a duration as a story tells it.
func Short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// What a client gets whose answer is lost, or whose command.
var (
	errLost = errors.New("the answer is lost")
	errCut  = errors.New("the cable is cut")
)

// Line is an actor's way to one server: its connection is made again after it has broken, as client libraries do.
type Line struct {
	link *Link
	lose bool
	cut  bool
}

var _ exhibit.Conn = (*Line)(nil)

// Line connects the client to a Redis.
func (a *Actor) Line(addr, label string) *Line {
	a.p.Helper()
	return &Line{link: a.Dial(addr, label)}
}

// LoseAnswer loses the answer to the next command: the server carries it out, and the connection breaks then.
func (l *Line) LoseAnswer() { l.lose = true }

// Cut has the next command not arrive: the server never hears of it.
func (l *Line) Cut() { l.cut = true }

// Do sends one command and writes it down, with its answer.
func (l *Line) Do(ctx context.Context, args ...string) (any, error) {
	a := l.link.actor
	if err := a.gate(args); err != nil {
		return nil, err
	}
	var reply any
	err := errCut
	if !l.cut {
		reply, err = l.link.conn.Do(ctx, args...)
	}
	l.cut = false
	if l.lose {
		reply, err, l.lose = nil, errors.Join(errLost, err), false
	}
	a.p.said(a.name, l.link.said(args, reply, err), l.link.message(err))
	if unanswered(err) {
		l.redial()
	}
	return reply, err
}

// redial replaces the connection. A server that is away keeps the broken one, which says so at the next command.
func (l *Line) redial() {
	_ = l.link.conn.Close() // it is of no use any more
	p := l.link.actor.p
	conn, err := servers.DialRedis(p.Context(), l.link.addr, nil)
	if err != nil {
		return
	}
	l.link.replace(conn)
	p.Cleanup(func() { _ = conn.Close() })
}

// Subscriber returns how a client subscribes at a Redis: with a connection of its own. The story tells of the
// subscription; of a message the client tells itself, see Heard.
func (a *Actor) Subscriber(addr string) exhibit.Subscribe {
	a.p.Helper()
	link := a.Dial(addr, "")
	return func(ctx context.Context, channel string) (next func(ctx context.Context) error, err error) {
		if _, err := link.Do(ctx, "SUBSCRIBE", channel); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			_, err := link.conn.Receive(ctx)
			return err
		}, nil
	}
}

// Heard tells of a message that the client got on a channel.
func (a *Actor) Heard(channel, message string) {
	a.Told("Redis", story.Reply, story.T("message on %s  →  %s", "收到 %s 的消息  →  %s", channel, message))
}
