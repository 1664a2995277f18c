package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/examples/internal/part"
	"github.com/interlock-go/interlock/internal/longrun"
)

// TestKill9_AtEveryArrow kills each component at each of its points, lets the others go on, and wants all invariants to
// hold and every order that was promised to be sold once.
func TestKill9_AtEveryArrow(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	t.Run("components", func(t *testing.T) { // returns when those that run side by side have ended
		for _, q := range queues[:longrun.Of(1, len(queues))] {
			killGates(t, w, q)
			killConsumers(t, w, q)
			killGivingUp(t, w, q)
			killSweepers(t, w, q)
		}
	})
	t.Run("servers", func(t *testing.T) { killServers(t, w) })
	t.Run("queue", func(t *testing.T) { killQueue(t, w) })
	t.Run("lost answers", func(t *testing.T) { loseAnswers(t, w) })
}

// aside runs a scene beside others.
func aside(t *testing.T, queue string, p point, more string, f func(t *testing.T)) {
	t.Helper()
	t.Run(queue+"/"+string(p)+more, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}

// killGates: the user gets no answer and asks again, of another gate.
func killGates(t *testing.T, w *town, q string) {
	points := []point{beforeReserve, afterReserve}
	if q == "nats" {
		points = append(points, afterSend)
	}
	for _, p := range points {
		aside(t, q, p, "", func(t *testing.T) {
			s := w.open(t, q, usual)
			s.killAt(gatePart, role{}, p, word{Order: orderOf("a")})
			s.order("a")
			s.settle(1)
		})
		aside(t, q, p, ", and the user is gone too", func(t *testing.T) {
			s := w.open(t, q, usual)
			s.killAt(gatePart, role{}, p, word{Order: orderOf("a")})
			sold := 1
			// Then nothing was done, or it was not sent and is swept.
			if p == beforeReserve || p == afterReserve && q == "nats" {
				sold = 0
			}
			s.settle(sold)
		})
	}
}

func killConsumers(t *testing.T, w *town, q string) {
	for _, p := range []point{afterReceive, afterTake, beforeCommit, afterCommit, afterConfirm, afterAck} {
		aside(t, q, p, "", func(t *testing.T) {
			s := w.open(t, q, usual)
			s.order("a", "b", "c")
			s.killAt(consumerPart, role{}, p)
			s.settle(3)
		})
	}
	for _, p := range []point{afterRefusal, afterRelease} {
		aside(t, q, p, "", func(t *testing.T) {
			s := w.open(t, q, usual)
			s.order("a", "b")
			// The database has less than Redis believes, as after a Redis that has lost its last seconds.
			_, err := s.office.ledger.db.ExecContext(t.Context(),
				"UPDATE sales SET number = 0, initial = 0 WHERE item = ?", s.Item)
			if err != nil {
				t.Fatal(err)
			}
			s.killAt(consumerPart, role{}, p)
			s.drain()
			r := s.verify()
			if r.Sold != 0 || r.Open != 0 || r.Left != usual.Stock || r.Pending != 0 {
				t.Errorf("the database has refused both orders, and this is left: %+v", r)
			}
		})
	}
}

// killGivingUp kills a consumer that gives an order up, because the database fails whatever it tries. Whoever comes
// next finds the order voided, or given back.
func killGivingUp(t *testing.T, w *town, q string) {
	for _, p := range []point{afterVoid, beforeBury} {
		aside(t, q, p, "", func(t *testing.T) {
			s := w.open(t, q, usual)
			s.order("a")
			mend := s.breakSales()
			s.killAt(consumerPart, role{Most: 1}, p)
			mend()
			s.settle(0)
			if left, err := s.office.stock.left(t.Context()); left != usual.Stock || err != nil {
				t.Errorf("%d are left (%v), not %d", left, err, usual.Stock)
			}
		})
	}
}

// breakSales makes the database refuse, with an error, to take anything from this sale's stock, until mend is called.
func (s *scene) breakSales() (mend func()) {
	s.t.Helper()
	exec := func(statement string) {
		s.t.Helper()
		if _, err := s.office.ledger.db.ExecContext(s.t.Context(), statement); err != nil {
			s.t.Fatal(err)
		}
	}
	name := "`broken " + s.Item + "`"
	exec("CREATE TRIGGER " + name + " BEFORE UPDATE ON sales FOR EACH ROW IF NEW.item = '" + s.Item +
		"' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'it fails, for a test'; END IF")
	return func() { exec("DROP TRIGGER " + name) }
}

func TestEveryPoint_IsOneAtWhichSomethingIsKilled(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	points := regexp.MustCompile(`(?m)^\t(\w+) +point = `).FindAllStringSubmatch(read("points.go"), -1)
	kills := read("kill_test.go")
	for _, p := range points {
		if !strings.Contains(kills, p[1]) {
			t.Errorf("nothing is killed at %s, so nobody knows what that does", p[1])
		}
	}
	if len(points) < 10 {
		t.Errorf("points.go has %d points; is this still how to find them?", len(points))
	}
}

func killSweepers(t *testing.T, w *town, q string) {
	for _, p := range []point{beforeSweep, afterSweep} {
		aside(t, q, p, "", func(t *testing.T) {
			s := w.open(t, q, usual)
			s.order("a", "b") // they come to the consumer when their time is over
			s.killAt(sweeperPart, role{Later: 2 * usual.Hold}, p)
			s.sweep()
			s.drain()
			s.want(0)
			if left, err := s.office.stock.left(t.Context()); left != usual.Stock || err != nil {
				t.Errorf("%d are left (%v), not %d", left, err, usual.Stock)
			}
			s.order("c")
			s.settle(1)
		})
	}
}

// killServers kills Redis or the database with -9 while a component stands at a point, and starts it again with what it
// has kept. The component goes on, and what it could not do is done again.
func killServers(t *testing.T, w *town) {
	fates := map[string]struct {
		restart func()
		points  []point
	}{
		"redis":   {func() { w.redis.Restart() }, []point{afterReceive, afterTake, afterCommit}},
		"mariadb": {func() { w.mariaDB.Restart() }, []point{afterTake, beforeCommit, afterCommit}},
	}
	for name, fate := range fates {
		for _, p := range fate.points {
			t.Run(name+"/"+string(p), func(t *testing.T) {
				s := w.open(t, "stream", usual)
				s.order("a", "b")
				a := s.start(consumerPart, role{Drain: true, Stop: p})
				restartAt(s, a, p, fate.restart)
				if heard := s.hear(a); !heard.Done {
					t.Fatalf("the consumer says %+v, not that it is done", heard)
				}
				s.settle(2)
			})
		}
	}
	t.Run("redis/"+string(afterReserve), func(t *testing.T) {
		s := w.open(t, "stream", usual)
		a := s.start(gatePart, role{Stop: afterReserve})
		if err := a.Send(word{Order: orderOf("a")}); err != nil {
			t.Fatal(err)
		}
		restartAt(s, a, afterReserve, fates["redis"].restart)
		if heard := s.hear(a); heard.Answer != reserved {
			t.Errorf("the gate says %+v, not reserved", heard)
		}
		s.settle(1)
	})
}

// restartAt lets the fate of a server happen while a stands at p.
func restartAt(s *scene, a *part.Actor, p point, restart func()) {
	s.t.Helper()
	if heard := s.hear(a); heard.Reached != p {
		s.t.Fatalf("the component says %+v before it has reached %q", heard, p)
	}
	restart()
	if err := a.Send(word{}); err != nil {
		s.t.Fatal(err)
	}
}

// killQueue takes the queue away: an order that cannot be sent is given back, also if the gate is killed meanwhile.
func killQueue(t *testing.T, w *town) {
	for _, kill := range []point{"", sendFailed, afterGiveBack} {
		t.Run("gone/"+string(kill), func(t *testing.T) {
			s := w.open(t, "nats", usual)
			s.order("before")
			w.nats.stop()
			if kill == "" {
				a, err := s.gate().order(t.Context(), orderOf("a"))
				if a != released || err != nil {
					t.Errorf("the order is answered %q, %v; want released", a, err)
				}
			} else {
				killWithoutQueue(s, w, kill)
			}
			if err := w.nats.restart(); err != nil {
				t.Fatal(err)
			}
			s.settle(1)
			if left, err := s.office.stock.left(t.Context()); left != usual.Stock-1 || err != nil {
				t.Errorf("%d are left (%v), not %d", left, err, usual.Stock-1)
			}
		})
	}
}

// killWithoutQueue kills a gate that cannot send. It must be connected before the queue goes.
func killWithoutQueue(s *scene, w *town, p point) {
	s.t.Helper()
	if err := w.nats.restart(); err != nil {
		s.t.Fatal(err)
	}
	a := s.start(gatePart, role{Stop: p})
	if err := a.Send(word{Order: orderOf("before")}); err != nil {
		s.t.Fatal(err)
	}
	if heard := s.hear(a); heard.Answer != reserved { // it is connected
		s.t.Fatalf("the gate says %+v, not that the order was reserved before", heard)
	}
	w.nats.stop()
	if err := a.Send(word{Order: orderOf("a")}); err != nil {
		s.t.Fatal(err)
	}
	if heard := s.hear(a); heard.Reached != p {
		s.t.Fatalf("the gate says %+v before it has reached %q", heard, p)
	}
	a.Kill()
}
