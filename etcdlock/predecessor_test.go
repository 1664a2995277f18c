package etcdlock

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// looks counts a client's looks at its place in a queue: those that read nothing but what they compare, and those that
// had to read who else is there.
type looks struct{ predecessor, all atomic.Int64 }

// onlyReads reports whether none of the operations writes.
func onlyReads(ops []*pb.RequestOp) bool {
	return !slices.ContainsFunc(ops, func(op *pb.RequestOp) bool { return op.GetRequestRange() == nil })
}

// counting opens a driver whose looks are counted.
func (s *stage) counting() (*Driver, *looks) {
	s.t.Helper()
	n := new(looks)
	count := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		txn, ok := req.(*pb.TxnRequest)
		switch {
		case !ok || err != nil || !onlyReads(txn.Success) || !onlyReads(txn.Failure):
		case len(txn.Success) == 0 && reply.(*pb.TxnResponse).Succeeded:
			n.predecessor.Add(1)
		default:
			n.all.Add(1)
		}
		return err
	}
	return s.through(count), n
}

// through opens a driver whose requests go through f.
func (s *stage) through(f grpc.UnaryClientInterceptor) *Driver {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.node.Addr()}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(f)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	d, err := New(s.ctx(), client, &Options{Session: time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = d.Close()
		_ = client.Close()
	})
	return d
}

// watches returns when d watches the key, and the server has said so.
func (s *stage) watches(d *Driver, key string) {
	s.t.Helper()
	s.soon("a watch on "+key, func() bool {
		d.listener.mu.Lock()
		defer d.listener.mu.Unlock()
		for _, w := range d.listener.watches {
			if w.key == key && w.begun {
				return true
			}
		}
		return false
	})
}

// A line in which each has its turn is passed through without anybody reading who else waits, whoever is behind whom;
// also if one goes to its end again in the step in which it gives the lock back. A watch whose stream breaks makes a
// waiter read the queue, as one may if the machine stands still, so one line of three has to do.
func TestLine_InWhichEachHasItsTurn_ReadsNobodyElse(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	b, seenByB := s.counting()
	c, seenByC := s.counting()
	for try := range 3 {
		near, all := seenByB.predecessor.Load()+seenByC.predecessor.Load(), seenByB.all.Load()+seenByC.all.Load()
		s.passesThrough(fmt.Sprint("lock-", try), a, []*Driver{b, c, b, b, c, c})
		near = seenByB.predecessor.Load() + seenByC.predecessor.Load() - near
		all = seenByB.all.Load() + seenByC.all.Load() - all
		if all == 0 && near >= 7 {
			return
		}
		t.Logf("%d looks went through the queue, and %d did not", all, near)
	}
	t.Error("of three lines none was passed through without reading it")
}

// passesThrough has a hold the lock and the others wait for it, each behind the one before. When a has given it back,
// each gives it back in its turn; the second requeues instead, and so comes last once more.
func (s *stage) passesThrough(name string, a *Driver, of []*Driver) {
	s.t.Helper()
	held := s.ask(name)
	s.take(held, a)
	before := placeAs(a, held)
	var line []*waiting
	for _, d := range of {
		w := s.waits(d, s.ask(name))
		s.watches(d, before)
		line, before = append(line, w), placeAs(d, w.r)
	}
	if err := s.release(a, held); err != nil {
		s.t.Fatal(err)
	}
	for i, last := 0, uint64(0); i < len(line); i++ {
		w := line[i]
		s.ends(w, rulesPatience)
		if w.err != nil || w.g.Token <= last {
			s.t.Fatalf("waiter %d: %+v, %v, after token %d", i, w.g, w.err, last)
		}
		last = w.g.Token
		if i == 1 {
			line, of = append(line, s.requeues(of[i], w.r, s.ask(name))), append(of, of[i])
			continue
		}
		if err := s.release(of[i], w.r); err != nil {
			s.t.Fatal(err)
		}
	}
}

// requeues gives a hold back for another at the end of the line, and returns when that is queued.
func (s *stage) requeues(d *Driver, give, r *driver.Request) *waiting {
	s.t.Helper()
	return s.queues(r, func(ctx context.Context) (driver.Grant, error) {
		return d.Requeue(ctx, &driver.Release{Key: give.Key, ID: give.ID}, r)
	})
}

// Who leaves the line before its turn lets nobody in, although the same session has had its turn before: it is a hold
// that is written down, and not a session.
func TestLine_WhoLeavesBeforeItsTurn_LetsNobodyIn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	c, seen := s.counting()
	if err := s.release(b, s.handsOver(a, b)); err != nil { // which writes it down
		t.Fatal(err)
	}
	found, err := a.client.Get(s.ctx(), b.names.served(b.current.id))
	if err != nil || len(found.Kvs) != 1 {
		t.Fatalf("what b has given back is not there: %v, %v", found, err)
	}

	held := s.ask("lock")
	s.take(held, a)
	leaves := s.waits(b, s.ask("lock"))
	w := s.waits(c, s.ask("lock"))
	s.watches(c, placeAs(b, leaves.r))
	if err := b.Release(s.ctx(), &driver.Release{Key: leaves.r.Key, ID: leaves.r.ID, Undo: true}); err != nil {
		t.Fatal(err)
	}
	s.watches(c, placeAs(a, held)) // it has looked
	select {
	case <-w.done:
		t.Fatalf("who was behind it is in beside the holder: %+v, %v", w.g, w.err)
	default:
	}
	if seen.all.Load() == 0 {
		t.Error("it was not looked who else is there")
	}
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if w.err != nil {
		t.Error(w.err)
	}
}

// What is written down ends with the session, and a lock for which nobody has waited writes nothing down.
func TestLine_WhatIsWrittenDown_EndsWithTheSession(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, reader := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(),
		time.Minute)
	written := func() (n int) {
		found, err := reader.client.Get(s.ctx(), reader.names.prefix+"served/", clientv3.WithPrefix(),
			clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Kvs)
	}
	for range 3 {
		r := s.ask("lock")
		s.take(r, a)
		if err := s.release(a, r); err != nil {
			t.Fatal(err)
		}
	}
	if n := written(); n != 0 {
		t.Errorf("%d keys are left of a lock for which nobody has waited", n)
	}
	if err := s.release(b, s.handsOver(a, b)); err != nil {
		t.Fatal(err)
	}
	if n := written(); n != 1 {
		t.Errorf("%d keys say what was given back", n)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if n := written(); n != 0 {
		t.Errorf("%d keys are left after the session", n)
	}
}
