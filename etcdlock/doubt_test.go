package etcdlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// script is a server that fails transactions as it is told. The last error is that of all further ones; nil carries a
// transaction out.
type script struct {
	pb.KVClient
	queue []*mvccpb.KeyValue // what a read finds
	errs  []error
}

func (s *script) Range(context.Context, *pb.RangeRequest, ...grpc.CallOption) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: new(pb.ResponseHeader), Kvs: s.queue}, nil
}

func (s *script) Txn(context.Context, *pb.TxnRequest, ...grpc.CallOption) (*pb.TxnResponse, error) {
	err := s.errs[0]
	if len(s.errs) > 1 {
		s.errs = s.errs[1:]
	}
	if err != nil {
		return nil, err
	}
	return &pb.TxnResponse{Header: new(pb.ResponseHeader), Succeeded: true}, nil
}

// doubtful is a driver on a script, and the request of the one key in its queue.
type doubtful struct {
	*Driver
	r *driver.Request
}

// doubts opens a driver on a server that fails with errs. If known is set, it has acquired the lock itself.
func doubts(t *testing.T, known bool, errs ...error) *doubtful {
	r := &driver.Request{Key: driver.Key{Kind: driver.KindMutex, Name: "lock"}, ID: "id", Tokens: 1}
	d := &Driver{
		opts: Options{RequestTimeout: time.Second}, names: names{defaultPrefix}, born: time.Now(),
		entries: make(map[holdID]*entry), client: clientv3.NewCtxClient(t.Context()),
	}
	d.life, d.stop = context.WithCancel(t.Context())
	d.current = &session{d: d, id: 1, timeout: time.Hour}
	e := &entry{
		d: d, r: r, over: make(chan struct{}), session: d.current, revision: 7, granted: true, waited: true, open: 1,
		queueKey: d.names.queueKey(r, d.current.id, 0),
	}
	kv := kvOf(e.queueKey, recordOf(r).text())
	d.client.KV = clientv3.NewKVFromKVClient(&script{queue: []*mvccpb.KeyValue{kv}, errs: errs}, nil)
	if known {
		d.entries[holdID{r.Key, r.ID}] = e
	}
	return &doubtful{d, r}
}

// ends ends the request, and the driver with it.
func (d *doubtful) ends(undo bool) error {
	defer d.background.Wait()
	defer d.stop()
	return d.Release(d.life, &driver.Release{Key: d.r.Key, ID: d.r.ID, Undo: undo})
}

// What servers say of the last attempt at a request.
var (
	errBroken   = status.Error(codes.Unavailable, "transport is closing")
	errUndialed = status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: refused"`)
)

// The first attempt at a release or a break has no answer. It may have been carried out, whatever the next is answered,
// so neither "not sent" nor a final refusal would be true.
func TestRelease_OrBreak_AfterAnAttemptWithoutAnAnswer_LeavesADoubt(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, errs ...error) error{
		"release":            func(t *testing.T, errs ...error) error { return doubts(t, true, errs...).ends(false) },
		"undo":               func(t *testing.T, errs ...error) error { return doubts(t, true, errs...).ends(true) },
		"release of another": func(t *testing.T, errs ...error) error { return doubts(t, false, errs...).ends(false) },
		"undo of another":    func(t *testing.T, errs ...error) error { return doubts(t, false, errs...).ends(true) },
		"break": func(t *testing.T, errs ...error) error {
			d := doubts(t, false, errs...)
			defer d.stop()
			return d.Break(d.life, d.r.Key, 7*blockSize)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				errs                   []error
				unsent, refused, final bool
			}{
				{errs: []error{errUndialed}, unsent: true},
				{errs: []error{errBroken, errUndialed}},
				{errs: []error{errBroken, rpctypes.ErrGRPCRequestTooManyRequests}},
				{errs: []error{rpctypes.ErrGRPCPermissionDenied}, refused: true, final: true},
				{errs: []error{errBroken, rpctypes.ErrGRPCPermissionDenied}, refused: true},
				{errs: []error{errBroken, rpctypes.ErrGRPCNoSpace}, refused: true},
			} {
				synctest.Test(t, func(t *testing.T) {
					err := ask(t, c.errs...)
					said := driver.Refusal(err)
					if driver.IsNotSent(err) != c.unsent || (said != nil) != c.refused ||
						c.refused && said.Open == c.final {
						t.Errorf("after %v: %#v", c.errs, err)
					}
				})
			}
		})
	}
}

// A full server may have carried out what it refuses. Nor is an undo "not sent" once its tomb is there.
func TestRelease_WhoseSecondPartIsNotSent_LeavesADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if err := doubts(t, true, rpctypes.ErrGRPCNoSpace, errUndialed).ends(false); driver.IsNotSent(err) {
			t.Errorf("a release that was refused for want of room first: %v", err)
		}
		if err := doubts(t, false, nil, errUndialed).ends(true); err == nil || driver.IsNotSent(err) {
			t.Errorf("an undo whose tomb is there: %v", err)
		}
	})
}

// The holder's session ends between the attempts at a break. The hold is over then, so the break is done, whatever a
// further request would be answered.
func TestBreak_WhoseHolderEndsAfterAnAttemptWithoutAnAnswer_IsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doubts(t, false, errBroken, rpctypes.ErrGRPCLeaseNotFound, errUndialed)
		defer d.stop()
		if err := d.Break(d.life, d.r.Key, 7*blockSize); err != nil {
			t.Error(err)
		}
	})
}

// Requests wait for a session before they are sent, so a doubt about its first key is none about them.
func TestSession_WhoseFirstKeyIsInDoubt_LeavesNoDoubtAboutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := doubts(t, false, errBroken, errUndialed)
		defer d.background.Wait()
		defer d.stop()
		d.current = nil
		d.client.Lease = grants{}
		if _, err := d.Acquire(d.life, d.r); !driver.IsNotSent(err) {
			t.Errorf("an acquire for which there is no session: %v", err)
		}
	})
}

// grants grants leases and does nothing else.
type grants struct{ clientv3.Lease }

func (grants) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return &clientv3.LeaseGrantResponse{ID: 1, TTL: 60}, nil
}

func TestDoubt_HidesNothingOfWhatServersSay(t *testing.T) {
	for _, err := range []error{rpctypes.ErrLeaseNotFound, rpctypes.ErrNoSpace, rpctypes.ErrPermissionDenied} {
		doubt := uncertainError{err}
		if isGone(doubt) != isGone(err) || isFull(doubt) != isFull(err) || outcomeOf(doubt) != outcomeOf(err) ||
			doubt.Error() != err.Error() {
			t.Errorf("with a doubt %v is something else", err)
		}
	}
}
