package main

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// loss is an answer that gets lost: the server does what it is asked at the point, and nobody hears of it.
type loss struct {
	at   point
	from string // which server
	done func(ctx context.Context, o *office) (bool, error)
}

var losses = []loss{
	{beforeReserve, "redis", func(ctx context.Context, o *office) (bool, error) {
		left, err := o.stock.left(ctx)
		return left < usual.Stock-1, err
	}},
	{afterReceive, "redis", isIn(isTaken)},
	{beforeCommit, "mariadb", func(ctx context.Context, o *office) (bool, error) {
		account, err := o.ledger.account(ctx)
		return len(account.orders) == 2, err
	}},
	{afterCommit, "redis", isIn(isConfirmed)},
	{afterConfirm, "redis", func(ctx context.Context, o *office) (bool, error) {
		n, err := o.queue.pending(ctx)
		return n == 0, err
	}},
}

// isIn reports that the order is in that state.
func isIn(want state) func(ctx context.Context, o *office) (bool, error) {
	return func(ctx context.Context, o *office) (bool, error) {
		all, err := o.stock.reservations(ctx)
		return all["a"].state == want, err
	}
}

// loseAnswers loses each answer and then the connection. Whoever asked cannot know what became of it, and asks again.
func loseAnswers(t *testing.T, w *town) {
	for _, l := range losses {
		t.Run(string(l.at), func(t *testing.T) {
			s := w.open(t, "stream", usual)
			s.order("before") // so that the server knows all scripts: it is not to be asked twice for one step
			s.drain()
			if l.at == beforeReserve {
				s.loseAnswerOfAGate(l)
			} else {
				s.loseAnswerOfAConsumer(l)
			}
			s.settle(2)
		})
	}
}

func (s *scene) loseAnswerOfAGate(l loss) {
	s.t.Helper()
	link := s.link(l.from)
	a := s.start(gatePart, role{})
	ask := func(request string) {
		s.t.Helper()
		if err := a.Send(word{Order: orderOf(request)}); err != nil {
			s.t.Fatal(err)
		}
	}
	ask("before") // so that it is connected
	if heard := s.hear(a); heard.Answer != sold {
		s.t.Fatalf("the gate says %+v, not that it was sold before", heard)
	}
	s.lose(link, l)
	ask("a")
	s.cut(link, l)
	heard := s.hear(a)
	if heard.Err == "" {
		s.t.Errorf("the gate says %+v, although it cannot know", heard)
	}
	for heard.Err != "" { // the user asks again; ends with patience at the latest, as the gate does
		ask("a")
		heard = s.hear(a)
	}
	if heard.Answer != reserved {
		s.t.Errorf("the gate says %+v, not reserved", heard)
	}
}

func (s *scene) loseAnswerOfAConsumer(l loss) {
	s.t.Helper()
	s.order("a")
	link := s.link(l.from)
	a := s.start(consumerPart, role{Drain: true, Stop: l.at})
	if heard := s.hear(a); heard.Reached != l.at {
		s.t.Fatalf("the consumer says %+v before it has reached %q", heard, l.at)
	}
	s.lose(link, l)
	if err := a.Send(word{}); err != nil {
		s.t.Fatal(err)
	}
	s.cut(link, l)
	if heard := s.hear(a); !heard.Done {
		s.t.Errorf("the consumer says %+v, not that it is done", heard)
	}
}

// link puts a proxy before a server, for the components that are started from now on.
func (s *scene) link(server string) *servers.Proxy {
	addr := &s.Redis
	if server == "mariadb" {
		addr = &s.MariaDB
	}
	p := servers.NewProxy(s.t, *addr)
	*addr = p.Addr()
	s.OneWire = true
	return p
}

// lose begins to lose answers.
func (s *scene) lose(link *servers.Proxy, l loss) {
	s.t.Helper()
	if done, err := l.done(s.t.Context(), s.office); done || err != nil {
		s.t.Fatalf("%q is done before it was asked for (%v)", l.at, err)
	}
	link.DropReplies()
}

// cut breaks the connections as soon as the server has done it, and lets new ones through.
func (s *scene) cut(link *servers.Proxy, l loss) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond) // nobody tells: that is what the test is about
	defer look.Stop()
	for {
		if done, err := l.done(ctx, s.office); err != nil {
			s.t.Fatalf("%q: %v", l.at, err)
		} else if done {
			break
		}
		<-look.C
	}
	link.Refuse() // who came now would have a connection that stays mute
	link.Reset()
	link.Pass()
}
