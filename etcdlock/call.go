// Requests to the servers: repeated over several members, with what is known of attempts without an answer.
// Transactions are made so that a repetition does no harm.
//
// Every request on which a lock depends goes through ask, so it may be carried out more than once, and late. Its
// transaction is written so that this does no harm: it compares the create revision of the key that it ends, which no
// later key ever has, or a tomb refuses it. What a session reads of its holds is not repeated here: the next sign of
// life reads it again.

package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// firstLimit divides RequestTimeout: that part is the limit of the first attempt at a request if there are several
// members. Each further attempt gets twice as much. grpc takes members in turn and notices only after some ten seconds
// that one hangs; meanwhile every so many requests lose that time. With a much smaller part, slow disks would look like
// a hanging member.
const firstLimit = 8

// ask sends a request until it is answered or refused, or its time is over. Each attempt goes to another connected
// member, if there is one. doubtful says that an attempt was left without an answer: the request may then have been
// carried out, or may be later, whatever another attempt was answered. That an attempt was never sent likewise says
// nothing about the others.
func (d *Driver) ask(ctx context.Context, send func(ctx context.Context) error) (doubtful bool, err error) {
	end := time.Now().Add(d.opts.RequestTimeout)
	limit := d.opts.RequestTimeout
	if d.several {
		limit /= firstLimit
	}
	// A request may fail with a refused connection first and run out of time later. The first tells the user what to
	// mend.
	var why error // the latest error that said more than that the time is over
	for pause := firstPause; ; pause, limit = min(2*pause, longestPause), 2*limit {
		once, cancel := context.WithTimeout(ctx, min(limit, time.Until(end)))
		once, sent := watchingUnsent(once)
		if err = send(once); err == nil {
			cancel()
			return doubtful, nil
		}
		var became outcome
		became, err = sent.became(err)
		late := once.Err() != nil
		cancel()
		switch became {
		case refused:
			return doubtful, err
		case unknown:
			doubtful = true
		case notSent:
		}
		if ctx.Err() != nil {
			return doubtful, ctx.Err()
		}
		if !late || became == notSent {
			why = err
		}
		// An error that does not pass, or no time for another attempt.
		if !isPassing(err) || !time.Now().Add(pause).Before(end) {
			return doubtful, cmp.Or(why, err)
		}
		enginekit.Pause(ctx, pause)
	}
}

// transaction is a request that is safe to send again: its comparisons see whether it was carried out before.
type transaction struct {
	when      []clientv3.Cmp
	then, els []clientv3.Op
}

// commit sends t as ask does. answer is that of the last attempt. With a doubt err is an [uncertainError].
func (d *Driver) commit(ctx context.Context, t *transaction) (answer *clientv3.TxnResponse, doubtful bool, err error) {
	doubtful, err = d.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = d.client.Txn(ctx).If(t.when...).Then(t.then...).Else(t.els...).Commit()
		return err
	})
	if err != nil && doubtful {
		err = uncertainError{err}
	}
	return answer, doubtful, err
}

// uncertainError is the error of the last attempt at a request, after an earlier attempt that had no answer. So the
// request may have been carried out, also if the last attempt was refused or never sent; see classed.
type uncertainError struct{ error }

// Unwrap returns the error of the last attempt.
func (u uncertainError) Unwrap() error { return u.error }

// get reads as ask does. Its errors leave nothing in doubt, because it changes nothing. A read goes through the
// leader's quorum (it is linearizable): a member that was cut off must not answer from its own memory, or a waiter
// could see a holder that has gone, or miss one that has come.
func (d *Driver) get(
	ctx context.Context, key string, opts ...clientv3.OpOption,
) (answer *clientv3.GetResponse, err error) {
	_, err = d.ask(ctx, func(ctx context.Context) (err error) {
		answer, err = d.client.Get(ctx, key, opts...)
		return err
	})
	return answer, err
}

// absent compares whether a key is not there.
func absent(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), "=", 0) }

// isOf compares whether a key is the one that was created at that revision, and not a later one of the same name. Keys
// are used again (see names.queueKey), so the name alone would let a late deletion end a hold of another request.
func isOf(key string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", revision)
}

// What an error says about one attempt at a request: was it carried out, refused, or never sent.
//
// The three outcomes decide what a caller must do. After refused and notSent there is nothing to clean up, unless a
// full server has refused; after unknown the request counts as open until it is undone, and a tomb must refuse it. So a
// doubt always counts as unknown: to clean up in vain costs a transaction, and to forget a copy costs an orphan that
// holds the lock until the session ends.

// outcome is what is known of a request that has failed.
type outcome uint8

const (
	unknown outcome = iota // it may have been carried out, or may be yet
	refused                // the servers have said no, and nothing was changed, unless isFull
	// notSent: it has not left this process, or was turned away unread. Nothing has happened, and it may be sent again.
	notSent
)

// outcomeOf decides what an error of the client library says about one attempt at a request. The caller must know
// whether other copies of it are under way. An error that only says that the time is over says nothing; see sending.
func outcomeOf(err error) outcome {
	switch codeOf(err) {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented, codes.DataLoss:
		return refused
	// A server that is too busy has not looked at the request; one without room has.
	case codes.ResourceExhausted:
		if errors.Is(rpctypes.Error(err), rpctypes.ErrTooManyRequests) {
			return notSent
		}
		return refused
	case codes.Unavailable:
		return outcomeOfConnection(err.Error())
	case codes.DeadlineExceeded, codes.Canceled:
		if strings.Contains(err.Error(), "latest balancer error") { // it has waited for a connection all the time
			return notSent
		}
		return unknown
	default:
		return unknown
	}
}

// outcomeOfConnection tells a connection that could not be made from one that broke. grpc has no other way to tell than
// its text. A text that is not in the list counts as unknown. So a new wording of grpc costs an undo that was not
// needed, and never a lock.
func outcomeOfConnection(text string) outcome {
	for _, unmade := range []string{
		"Error while dialing", "authentication handshake failed", "error reading server preface",
		"there is no address available", "there is no connection available",
	} {
		if strings.Contains(text, unmade) {
			return notSent
		}
	}
	return unknown
}

// isRefusal reports whether the servers have said no. Nothing was changed then, unless isFull.
func isRefusal(err error) bool { return outcomeOf(err) == refused }

// isUnsent reports whether a request has not left this process, or was turned away unread.
func isUnsent(err error) bool { return outcomeOf(err) == notSent }

// sending is what is known of one attempt at a request beyond what the client library tells: it waits for a connection,
// and when the time is over it says nothing else. About a client that was given to [New] nothing is known.
type sending struct {
	never atomic.Pointer[error] // why the attempt has not left this process; nil if it may have
}

// sendingKey is the key of a *sending in a context. The context is the only thing that reaches both the caller and
// grpc's interceptor.
type sendingKey struct{}

// watchingUnsent returns ctx for one attempt, and what will be known of that.
func watchingUnsent(ctx context.Context) (context.Context, *sending) {
	s := new(sending)
	return context.WithValue(ctx, sendingKey{}, s), s
}

// markUnsent records why the attempt of ctx was not sent.
func markUnsent(ctx context.Context, why error) {
	if s, has := ctx.Value(sendingKey{}).(*sending); has {
		s.never.Store(&why)
	}
}

// became returns the outcome of an attempt that has failed with err, and the error that says most about it.
func (s *sending) became(err error) (outcome, error) {
	if never := s.never.Load(); never != nil {
		return notSent, *never
	}
	return outcomeOf(err), err
}

// noticesUnsent is a grpc.UnaryClientInterceptor that records requests which were not sent.
func noticesUnsent(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if err != nil && isUnsent(err) {
		markUnsent(ctx, err)
	}
	return err
}
