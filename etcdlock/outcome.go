// What an error says about one attempt at a request: was it carried out, refused, or never sent. call.go repeats by it,
// refusal.go makes errors of it.
//
// The three outcomes decide what a caller must do. After refused and notSent there is nothing to clean up, unless a
// full server has refused; after unknown the request counts as open until it is undone, and a tomb must refuse it. So a
// doubt always counts as unknown: to clean up in vain costs a transaction, and to forget a copy costs an orphan that
// holds the lock until the session ends.

package etcdlock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

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
