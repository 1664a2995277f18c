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
	"google.golang.org/grpc"
)

// A server that has no room for another write still passes the lock down the line: to give back takes none.
func TestLine_OnAServerThatIsFull_GoesOn(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, c := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(),
		time.Minute)
	held := s.ask("lock")
	s.take(held, a)
	first := s.waits(b, s.ask("lock"))
	second := s.waits(c, s.ask("lock"))
	alarm := pb.NewMaintenanceClient(a.client.ActiveConnection())
	if _, err := alarm.Alarm(s.ctx(), &pb.AlarmRequest{
		Action: pb.AlarmRequest_ACTIVATE,
		Alarm:  pb.AlarmType_NOSPACE,
	}); err != nil {
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
	last := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if _, ok := req.(*pb.TxnRequest); ok && err == nil && full.CompareAndSwap(true, false) {
			return rpctypes.ErrGRPCNoSpace
		}
		return err
	}
	a := s.through(last)
	full.Store(true)
	r := s.ask("lock")
	g, err := a.Acquire(s.ctx(), r)
	if said := driver.Refusal(err); said == nil || !said.Open || said.Hint == "" ||
		strings.Contains(err.Error(), "did not answer") {
		t.Fatalf("on a server that is full: %+v, %v, want a refusal that is undone", g, err)
	}
	if full.Load() {
		t.Fatal("nothing was asked")
	}
	s.take(s.ask("lock"), s.opens(s.node.Addr(), time.Minute)) // nobody is in the way
}

// Nor does a release that took it go on for ever: asked again, it says that the hold is over.
func TestRelease_ThatTookTheLastRoom_ComesToAnEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	full := make(chan struct{}, 1)
	alarm := pb.NewMaintenanceClient(s.opens(s.node.Addr(), time.Minute).client.ActiveConnection())
	last := func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if txn, ok := req.(*pb.TxnRequest); !ok || err != nil || onlyReads(txn.Success) {
			return err
		}
		select {
		case <-full:
			if _, err := alarm.Alarm(ctx, &pb.AlarmRequest{
				Action: pb.AlarmRequest_ACTIVATE,
				Alarm:  pb.AlarmType_NOSPACE,
			}); err != nil {
				return err
			}
			return rpctypes.ErrGRPCNoSpace
		default:
			return err
		}
	}
	a, b := s.opens(s.node.Addr(), time.Minute), s.through(last)
	r := s.handsOver(a, b)
	full <- struct{}{}
	if err := s.release(b, r); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a release of which nobody knows whether it was carried out says %v", err)
	}
	if err := s.release(b, r); !errors.Is(err, driver.ErrLost) {
		t.Errorf("asked again it says %v", err)
	}
}
