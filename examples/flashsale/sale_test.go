package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// TestSale runs what does not need to kill anything, on one set of servers.
func TestSale(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	for name, test := range map[string]func(t *testing.T, w *town, q string){
		"Crowd_BuysWhatIsThere":                         testCrowd,
		"Answers_SayWhy":                                testAnswers,
		"RepeatedRequest_IsOneOrder":                    testRepeated,
		"Refused_IsGivenBack":                           testRefused,
		"GivenUp_IsVoidedFirstAndKept":                  testGivenUp,
		"Garbled_IsKept":                                testGarbled,
		"OrderThatRedisHasLost_IsBookedAllTheSame":      testLost,
		"TakenByAConsumer_IsNotSwept":                   testTaken,
		"TimeOver_IsGivenBack_AndTheLateOrderIsDropped": testLate,
		"Verify_NoticesEachViolation":                   testVerify,
	} {
		for _, q := range queues {
			t.Run(name+"/"+q, func(t *testing.T) { test(t, w, q) })
		}
	}
	t.Run("SentButNotAcknowledged_StaysWithTheConsumer", func(t *testing.T) { testLateAnswer(t, w) })
	t.Run("VerifyCommand", func(t *testing.T) { testVerifyCommand(t, w) })
}

func testCrowd(t *testing.T, w *town, q string) {
	many := usual
	many.Stock, many.Limit = 20, 1
	s := w.open(t, q, many)
	const seed = 7
	shots := crowd{gate: s.gate(), rate: 1000, length: 100 * time.Millisecond, users: 60, seed: seed}.shoot(t.Context())
	s.drain()
	s.want(min(many.Stock, distinctUsers(shots)))
	if n := len(byAnswer(shots)[soldOut]); distinctUsers(shots) > many.Stock && n == 0 {
		t.Errorf("seed %d: nobody was told that all is sold: %v", seed, byAnswer(shots))
	}
}

func distinctUsers(shots []shot) int {
	users := map[string]bool{}
	for _, s := range shots {
		users[s.order.User] = true
	}
	return len(users)
}

func testAnswers(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	for _, step := range []struct {
		o    order
		want answer
	}{
		{order{"1", "ann", 2}, reserved},
		{order{"1", "ann", 2}, reserved}, // again
		{order{"1", "bob", 2}, conflict},
		{order{"1", "ann", 1}, conflict},
		{order{"2", "ann", 1}, overMax},
		{order{"3", "bob", 2}, reserved},
		{order{"4", "cid", 2}, soldOut},
		{order{"5", "cid", 1}, reserved},
	} {
		if a, err := s.gate().order(t.Context(), step.o); a != step.want || err != nil {
			t.Errorf("%+v is answered %q, %v; want %q", step.o, a, err, step.want)
		}
	}
	s.drain()
	if a, err := s.gate().order(t.Context(), order{"1", "ann", 2}); a != sold || err != nil {
		t.Errorf("an order that is booked is answered %q, %v", a, err)
	}
	s.settle(usual.Stock)
	if _, err := s.gate().order(t.Context(), order{"6", "", 1}); err == nil {
		t.Error("an order of nobody is no error")
	}

	late, early := usual, usual
	late.Closes, early.Opens = time.Unix(1, 0), time.Unix(1<<33-1, 0)
	for want, what := range map[answer]sale{closed: late, tooEarly: early} {
		if a, err := w.open(t, q, what).gate().order(t.Context(), orderOf("a")); a != want || err != nil {
			t.Errorf("outside of the sale's time the answer is %q, %v; want %q", a, err, want)
		}
	}
}

func testRepeated(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if a, err := s.gate().order(t.Context(), orderOf("a")); err != nil || a != reserved && a != sold {
				t.Errorf("it is answered %q, %v", a, err)
			}
		})
	}
	all.Wait()
	s.settle(1)
}

// shrink makes the database have less than Redis believes, as after a Redis that has lost its last seconds.
func (s *scene) shrink(to int) {
	s.t.Helper()
	_, err := s.office.ledger.db.ExecContext(s.t.Context(), "UPDATE sales SET number = ? WHERE item = ?", to, s.Item)
	if err != nil {
		s.t.Fatal(err)
	}
}

func testRefused(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	s.order("a", "b", "c")
	s.shrink(2)
	s.drain()
	r := s.verify()
	if r.Sold != 2 || r.Left != 3 || r.Open != 0 || r.Pending != 0 {
		t.Errorf("the database has refused one of three, and this is left: %+v", r)
	}
	answers := map[answer]int{}
	for _, request := range []string{"a", "b", "c"} {
		a, err := s.gate().order(t.Context(), orderOf(request))
		if err != nil {
			t.Fatal(err)
		}
		answers[a]++
	}
	if answers[sold] != 2 || answers[released] != 1 {
		t.Errorf("the users are told %v; want two sold and one released", answers)
	}
}

// testGivenUp: an order that fails again and again is given up in the database first, so that
// nothing can book it later.
func testGivenUp(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	s.order("a")
	d := s.receive()
	d.times = mostDeliveries
	c := s.consumer()
	if _, err := s.office.stock.take(t.Context(), d.order); err != nil {
		t.Fatal(err)
	}
	if err := c.orGiveUp(t.Context(), d, errors.New("it fails, for a test")); err != nil {
		t.Fatal(err)
	}
	if v, err := s.office.ledger.book(t.Context(), d.order, func() error { return nil }); v != voided || err != nil {
		t.Errorf("a late consumer's booking is answered %q, %v; want voided", v, err)
	}
	s.want(0)

	d.times = mostDeliveries - 1
	if err := c.orGiveUp(t.Context(), d, errRefusedForTest); !errors.Is(err, errRefusedForTest) {
		t.Errorf("an order that was not tried often enough is given up: %v", err)
	}
}

var errRefusedForTest = errors.New("once more")

// receive returns the next delivery.
func (s *scene) receive() delivery {
	s.t.Helper()
	for s.t.Context().Err() == nil {
		d, found, err := s.office.queue.receive(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if found {
			return d
		}
	}
	s.t.Fatal("nothing is delivered")
	return delivery{}
}

func testGarbled(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	var err error
	switch queue := s.office.queue.(type) {
	case *stream:
		err = queue.c.Do(t.Context(), queue.c.B().Xadd().Key(queue.outboxKey).Id("*").FieldValue().
			FieldValue("request", "x").FieldValue("quantity", "many").Build()).Error()
	case *natsQueue:
		_, err = queue.js.Publish(t.Context(), queue.subject, []byte("{"))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.order("a")
	s.settle(1)
}

// testLost: the message outlived the reservation. The database decides.
func testLost(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	s.order("a")
	for _, what := range []string{"reservations", "users", "due", "sale"} {
		del := s.office.redis.B().Del().Key(s.office.stock.key(what)).Build()
		if err := s.office.redis.Do(t.Context(), del).Error(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.office.load(t.Context(), usual); err != nil {
		t.Fatal(err)
	}
	s.settle(1)
}

func testTaken(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	s.order("a")
	d := s.receive()
	if state, err := s.office.stock.take(t.Context(), d.order); state != isTaken || err != nil {
		t.Fatalf("it is %q (%v), not taken", state, err)
	}
	if n := s.sweep(); n != 0 {
		t.Errorf("%d reservations were swept that a consumer is about to book", n)
	}
	if code := s.verify().exitCode(); code != verifyUnknown {
		t.Errorf("verify ends with %d while an order is under way; want %d", code, verifyUnknown)
	}
	s.settle(1)
}

// deaf is a queue whose word that it has the order is lost, and comes too late: a consumer has taken the order.
type deaf struct {
	queue
	taken func()
}

func (q deaf) send(ctx context.Context, o order) error {
	if err := q.queue.send(ctx, o); err != nil {
		return err
	}
	q.taken()
	return context.DeadlineExceeded
}

// testLateAnswer: what a consumer is about to book must not be given back because the gate
// believes that it was not sent.
func testLateAnswer(t *testing.T, w *town) {
	s := w.open(t, "nats", usual)
	g := s.gate()
	g.queue = deaf{g.queue, func() {
		if state, err := s.office.stock.take(t.Context(), s.receive().order); state != isTaken || err != nil {
			t.Errorf("the consumer gets %q, %v; want that it has taken the order", state, err)
		}
	}}
	if a, err := g.order(t.Context(), orderOf("a")); a != reserved || err != nil {
		t.Errorf("the user is told %q, %v; want reserved", a, err)
	}
	s.settle(1)
}

func testLate(t *testing.T, w *town, q string) {
	s := w.open(t, q, usual)
	s.order("a")
	if n := s.sweep(); n != 1 {
		t.Errorf("%d were swept, not 1", n)
	}
	if n := s.sweep(); n != 0 {
		t.Errorf("%d were swept twice", n)
	}
	s.drain()
	s.want(0)
}
