package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/examples/internal/part"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestMain(m *testing.M) {
	part.Play(parts)
	os.Exit(m.Run())
}

// town is a set of servers.
type town struct {
	redis   *servers.RedisNode
	mariaDB *servers.MariaDBNode
	nats    *natsServer
	items   atomic.Int64
}

// newTown starts servers that find their data again after a restart. Redis writes before it answers: with
// appendfsync everysec a write waits while the second before it is on its way to a slow disk, and a kill -9 loses
// what was answered meanwhile.
func newTown(t *testing.T) *town {
	t.Helper()
	safe := map[string]string{"appendonly": "yes", "appendfsync": "always"}
	w := &town{
		redis:   servers.RedisServer(t, &servers.RedisOptions{Config: safe}),
		mariaDB: servers.MariaDBServer(t, nil),
	}
	var err error
	if w.nats, err = startNATS(filepath.Join(t.TempDir(), "nats"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.nats.stop() })
	return w
}

// queues are the two that an order may take.
var queues = []string{"stream", "nats"}

// scene is one sale of a town.
type scene struct {
	t *testing.T
	site
	office *office
}

// usual is a sale of five, two for each user.
var usual = sale{Stock: 5, Limit: 2, Opens: time.Unix(0, 0), Closes: time.Unix(1<<33, 0), Hold: time.Hour}

// open begins a sale of an item of its own.
func (w *town) open(t *testing.T, queue string, s sale) *scene {
	t.Helper()
	at := site{
		Item: fmt.Sprintf("item-%d", w.items.Add(1)), Redis: w.redis.Addr(), MariaDB: w.mariaDB.Addr(),
		Again: 150 * time.Millisecond,
	}
	if queue == "nats" {
		at.NATS = w.nats.url()
	}
	o, err := at.open(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.close)
	if err := o.load(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return &scene{t: t, site: at, office: o}
}

// gate is one in this process.
func (s *scene) gate() *gate {
	return &gate{stock: s.office.stock, queue: s.office.queue, at: passThrough}
}

// order sends orders through the gate of this process, each of a user of its own.
func (s *scene) order(requests ...string) {
	s.t.Helper()
	for _, r := range requests {
		if a, err := s.gate().order(s.t.Context(), orderOf(r)); a != reserved || err != nil {
			s.t.Fatalf("%s is answered %q, %v; want reserved", r, a, err)
		}
	}
}

func orderOf(request string) order {
	return order{Request: request, User: "user of " + request, Quantity: 1}
}

// patience is how long a component may take, also while a database is started again on a busy machine: a test that
// waits for something that never comes fails then.
const patience = time.Minute

// start starts a component in a process of its own.
func (s *scene) start(name string, r role) *part.Actor {
	s.t.Helper()
	r.Site, r.Name = s.site, fmt.Sprintf("%s-%s", name, s.t.Name())
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	a, err := part.Start(ctx, name, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// hear waits for what a component says.
func (s *scene) hear(a *part.Actor) word {
	s.t.Helper()
	var w word
	if err := a.Receive(&w); err != nil {
		s.t.Fatalf("the component says nothing more: %v", err)
	}
	return w
}

// killAt starts a component, has it do something, and kills it with -9 at the point.
func (s *scene) killAt(name string, r role, p point, first ...word) {
	s.t.Helper()
	r.Stop = p
	a := s.start(name, r)
	for _, w := range first {
		if err := a.Send(w); err != nil {
			s.t.Fatal(err)
		}
	}
	if w := s.hear(a); w.Reached != p {
		s.t.Fatalf("the %s says %+v before it has reached %q", name, w, p)
	}
	a.Kill()
}

// drain consumes until the queue is empty.
func (s *scene) drain() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.consumer().run(ctx, true); err != nil || ctx.Err() != nil {
		s.t.Fatalf("the consumer ends with %v, %v; the queue is not empty", err, ctx.Err())
	}
}

// consumer is one in this process.
func (s *scene) consumer() *consumer {
	return &consumer{
		stock: s.office.stock, ledger: s.office.ledger, queue: s.office.queue, at: passThrough, log: quiet(),
	}
}

// sweep gives back all that waits in vain, as if its time were over, and returns how many reservations that were.
func (s *scene) sweep() int {
	s.t.Helper()
	sw := &sweeper{stock: s.office.stock, locks: s.office.locks, at: passThrough}
	n, err := sw.sweep(s.t.Context(), 2*usual.Hold)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// settle drains, sweeps and drains, and then wants all invariants to hold and so many items to be sold.
func (s *scene) settle(sold int) {
	s.t.Helper()
	s.drain()
	s.sweep()
	s.drain()
	s.want(sold)
}

// want checks the invariants, that nothing is open, and how much is sold.
func (s *scene) want(sold int) {
	s.t.Helper()
	r := s.verify()
	if r.exitCode() != verifyFine || r.Sold != sold {
		s.t.Errorf("%d sold, exit code %d; want %d and 0: %+v", r.Sold, r.exitCode(), sold, r)
	}
	if due, err := s.office.stock.dueRequests(s.t.Context()); len(due) > 0 || err != nil {
		s.t.Errorf("nothing is open, and the sweeper would still come to %q (%v)", due, err)
	}
}

func (s *scene) verify() *result {
	s.t.Helper()
	r, err := verify(context.WithoutCancel(s.t.Context()), s.office)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}
