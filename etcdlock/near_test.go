package etcdlock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// looks counts the transactions of a client that read nothing but what they compare, and those that had to read who is in the queue.
type looks struct{ near, all atomic.Int64 }

// counting opens a driver whose looks are counted.
func (s *stage) counting() (*Driver, *looks) {
	s.t.Helper()
	n := new(looks)
	count := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if txn, ok := req.(*pb.TxnRequest); ok && err == nil && len(txn.Success) == 0 { // a look
			if reply.(*pb.TxnResponse).Succeeded {
				n.near.Add(1)
			} else {
				n.all.Add(1)
			}
		}
		return err
	}
	return s.through(count), n
}

// through opens a driver whose requests go through f.
func (s *stage) through(f grpc.UnaryClientInterceptor) *Driver {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.node.Addr()}, Logger: zap.NewNop(), DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(f)},
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
		d.ear.mu.Lock()
		defer d.ear.mu.Unlock()
		for _, w := range d.ear.watches {
			if w.key == key && w.begun {
				return true
			}
		}
		return false
	})
}

// A line in which each has its turn is passed through without anybody reading who else waits, whoever is behind whom.
func TestLine_InWhichEachHasItsTurn_ReadsNobodyElse(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a := s.opens(s.node.Addr(), time.Minute)
	b, seenByB := s.counting()
	c, seenByC := s.counting()
	held := s.ask("lock")
	s.take(held, a)
	var line []*waiting
	of := []*Driver{b, c, b, b, c, c}
	for i, d := range of {
		w := s.waits(d, s.ask("lock"))
		if i == 0 {
			s.watches(d, placeAs(a, held))
		} else {
			s.watches(d, placeAs(of[i-1], line[i-1].r))
		}
		line = append(line, w)
	}
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for i, w := range line {
		s.ends(w, rulesPatience)
		if w.err != nil || w.g.Token <= last {
			t.Fatalf("waiter %d: %+v, %v, after token %d", i, w.g, w.err, last)
		}
		last = w.g.Token
		if err := s.release(of[i], w.r); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*looks{seenByB, seenByC} {
		if all, near := n.all.Load(), n.near.Load(); all != 0 || near < 3 {
			t.Errorf("%d looks went through the queue, and %d did not", all, near)
		}
	}
}

// Who leaves the line before its turn lets nobody in, although the same session has had its turn before: it is a hold that is written
// down, and not a session.
func TestLine_WhoLeavesBeforeItsTurn_LetsNobodyIn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	c, seen := s.counting()
	first := s.ask("lock")
	s.take(first, a)
	earlier := s.waits(b, s.ask("lock"))
	if err := s.release(a, first); err != nil {
		t.Fatal(err)
	}
	s.ends(earlier, rulesPatience)
	if err := s.release(b, earlier.r); err != nil { // which writes it down
		t.Fatal(err)
	}
	found, err := a.client.Get(s.ctx(), b.names.passed(b.current.id))
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

// A server that has no room for another write still passes the lock down the line: to give back takes none.
func TestLine_OnAServerThatIsFull_GoesOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, c := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	held := s.ask("lock")
	s.take(held, a)
	first := s.waits(b, s.ask("lock"))
	second := s.waits(c, s.ask("lock"))
	alarm := pb.NewMaintenanceClient(a.client.ActiveConnection())
	if _, err := alarm.Alarm(s.ctx(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, Alarm: pb.AlarmType_NOSPACE}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.client.Put(s.ctx(), "something", "else"); err == nil {
		t.Fatal("the server is not full")
	}
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		*waiting
		by *Driver
	}{{first, b}, {second, c}} {
		s.ends(w.waiting, rulesPatience)
		if w.err != nil {
			t.Fatal(w.err)
		}
		if err := s.release(w.by, w.r); err != nil {
			t.Fatalf("a release on a server that is full: %v", err)
		}
	}
}

// etcd's quotaApplierV3 carries out the request that takes the last room, and says that there is none.
func TestAcquire_ThatTookTheLastRoom_LeavesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	var full atomic.Bool
	last := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if _, ok := req.(*pb.TxnRequest); ok && err == nil && full.CompareAndSwap(true, false) {
			return rpctypes.ErrGRPCNoSpace
		}
		return err
	}
	a := s.through(last)
	full.Store(true)
	r := s.ask("lock")
	if g, err := a.Acquire(s.ctx(), r); !errors.Is(err, driver.ErrUnavailable) {
		t.Fatalf("on a server that is full: %+v, %v", g, err)
	}
	if full.Load() {
		t.Fatal("nothing was asked")
	}
	s.take(s.ask("lock"), s.opens(s.node.Addr(), time.Minute)) // nobody is in the way
}

// What is written down ends with the session, and a lock for which nobody has waited writes nothing down.
func TestLine_WhatIsWrittenDown_EndsWithTheSession(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, reader := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	written := func() (n int) {
		found, err := reader.client.Get(s.ctx(), reader.names.passed(0)[:len(reader.names.passed(0))-1], clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range found.Kvs {
			if !strings.HasPrefix(string(kv.Key), reader.names.prefix+"passed/") {
				t.Errorf("found %q", kv.Key)
			}
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
	held := s.ask("lock")
	s.take(held, a)
	w := s.waits(b, s.ask("lock"))
	if err := s.release(a, held); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if err := s.release(b, w.r); err != nil {
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
