package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// withLimit is ask for n permits of limit.
func (s *stage) withLimit(n, limit int) *driver.Request {
	r := s.permits(n)
	r.Limit = limit
	return r
}

// lateAnswers is a client to which the answers to transactions come late: a process that is slow, or has died, when the
// servers have done what it asked.
type lateAnswers struct {
	pb.KVClient
	done chan struct{} // a transaction was carried out
	pass chan struct{} // its answer arrives
}

func (l *lateAnswers) Txn(ctx context.Context, r *pb.TxnRequest, o ...grpc.CallOption) (*pb.TxnResponse, error) {
	answer, err := l.KVClient.Txn(ctx, r, o...)
	select {
	case l.done <- struct{}{}:
	default:
	}
	<-l.pass
	return answer, err
}

// late has the answers to d's transactions come late.
func late(d *Driver) *lateAnswers {
	l := &lateAnswers{pb.NewKVClient(d.client.ActiveConnection()), make(chan struct{}, 1), make(chan struct{})}
	d.client.KV = clientv3.NewKVFromKVClient(l, d.client)
	return l
}

// What a request with another limit leaves behind, until it has heard that it is refused, must not count for anybody.
func TestSemaphore_ARequestThatIsAboutToBeRefused_SetsNoLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	a, b, wrong := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute),
		s.opens(s.node.Addr(), time.Minute)
	first, second := s.withLimit(1, 3), s.withLimit(1, 3)
	s.take(first, a)
	answers := late(wrong)
	refused := make(chan error, 1)
	request := s.withLimit(1, 5)
	go func() { // ends when its answers arrive
		_, err := wrong.Acquire(s.ctx(), request)
		refused <- err
	}()
	<-answers.done
	s.take(second, b)
	if err := s.release(a, first); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Acquire(s.ctx(), s.withLimit(1, 3)); err != nil {
		t.Errorf("a request with the limit that is in use: %v", err)
	}
	if g, err := b.Acquire(s.ctx(), s.withLimit(4, 5)); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("four of five permits beside one of three: %+v, %v", g, err)
	}
	close(answers.pass)
	if err := <-refused; !errors.Is(err, driver.ErrConflict) {
		t.Errorf("the request with another limit: %v", err)
	}
	info, err := a.Look(s.ctx(), first.Key)
	if err != nil || info.Limit != 3 || len(info.Holders) != 2 || len(info.Waiters) != 0 {
		t.Errorf("at the end the lock is %+v, %v", info, err)
	}
}

// Keys of earlier versions have no limit in their names: their records say it.
func TestSemaphore_BesideKeysOfAnEarlierVersion_TheirRecordsSayTheLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	old, a := s.opens(s.node.Addr(), time.Minute), s.opens(s.node.Addr(), time.Minute)
	was := s.withLimit(1, 3)
	key := a.names.queuePrefix(was.Key) + old.current.String() + "-0"
	s.forges(old, key, recordOf(was).text(), clientv3.WithLease(old.current.id))
	if _, err := a.Acquire(s.ctx(), s.withLimit(1, 4)); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("one of four permits beside one of three: %v", err)
	}
	held := s.withLimit(2, 3)
	s.take(held, a)
	w := s.waits(a, s.withLimit(1, 3))
	if _, err := old.client.Delete(s.ctx(), key); err != nil {
		t.Fatal(err)
	}
	s.ends(w, rulesPatience)
	if w.err != nil {
		t.Error(w.err)
	}
	// From now on all names have the limit.
	if _, err := old.Acquire(s.ctx(), s.withLimit(1, 4)); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("one of four permits beside three of three: %v", err)
	}
}
