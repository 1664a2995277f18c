// What errors of etcd and grpc mean, and the errors that callers get. call.go says whether a request was carried out.
//
// Two questions are kept apart here and in call.go. "May it help to ask again?" is isPassing; "what became of the
// request?" is outcomeOf. A lost connection is passing and of unknown outcome; a missing right is neither.

package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errUnanswered is the cause of a session that was given up because the servers were silent.
var errUnanswered = errors.New("etcd: no answer to the session's signs of life within its timeout")

// codeOf returns the grpc code of err. The client library wraps what the servers say. Signs of life have a stream of
// our own, whose errors come as plain grpc statuses.
func codeOf(err error) codes.Code {
	var said rpctypes.EtcdError
	if errors.As(err, &said) {
		return said.Code()
	}
	return status.Code(err)
}

// isGone reports whether the session is not known to the servers. A put with the lease, a sign of life and a revocation
// are all answered so, and all mean that the holds of the session are over.
func isGone(err error) bool {
	return errors.Is(rpctypes.Error(err), rpctypes.ErrLeaseNotFound)
}

// isFull reports whether a server has no room. It says so too about the request that took the last of it, and that was
// carried out.
func isFull(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace) }

// isPassing reports whether the same request may well succeed if it is sent again: a connection was cut, a member was
// silent for too long, or there is no leader.
func isPassing(err error) bool {
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Aborted:
		return true
	case codes.ResourceExhausted: // only if the server has not looked at it
		return isUnsent(err)
	case codes.Unknown: // what raft says without a leader
		return errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "proposal dropped")
	default:
		return errors.Is(err, context.DeadlineExceeded)
	}
}

// failure returns the error of a call that has failed with err: that of the driver or of ctx if they have ended. Close
// comes first: it ends the contexts of all calls, so the error of the request only says that its context has ended.
func (d *Driver) failure(ctx context.Context, err error) error {
	switch {
	case d.isClosed():
		return driver.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return err
	}
}

// unavailable is failure for calls whose errors the portable layer does not wrap.
func (d *Driver) unavailable(ctx context.Context, op, name string, err error) error {
	err = d.failure(ctx, err)
	if errors.Is(err, driver.ErrClosed) {
		return err
	}
	return classed(op, name, err, false)
}

// sorted is unavailable for calls that also have answers of their own, which it keeps.
func (d *Driver) sorted(ctx context.Context, op, name string, err error) error {
	for _, known := range []error{driver.ErrHeld, driver.ErrNotHeld, driver.ErrConflict, driver.ErrClosed} {
		if errors.Is(err, known) {
			return err
		}
	}
	return d.unavailable(ctx, op, name, err)
}

// lost says how a hold ended.
func lost(key driver.Key, token uint64, reason driver.LostReason, cause error) error {
	return &driver.LostError{Kind: key.Kind, Name: key.Name, Token: token, Reason: reason, Cause: cause}
}

// errReleased refuses a request that has been released or undone.
func errReleased(key driver.Key) error {
	return fmt.Errorf("etcd: the request for %s %q has been released or undone: %w", key.Kind, key.Name, driver.ErrLost)
}

// errConflict refuses a semaphore with another limit than the one in use. Both limits are named because the one in use
// comes from another process, whose code the reader may have to compare.
func errConflict(r *driver.Request, limit int) error {
	return fmt.Errorf("etcd: the %s %q is in use with a limit of %d, not %d: %w", r.Kind, r.Name, limit, r.Limit,
		driver.ErrConflict)
}

// Errors of requests as the classes of package driver (docs/rationale.md, Classes of errors). call.go says what became
// of a request.

// classed returns an error of a request as one of the classes of package driver. copies says that another copy of the
// request may have been carried out, or may be yet; an [uncertainError] says so too. Then nothing counts as not sent. A
// definite answer to one copy says nothing about another, which may arrive later. So with copies a refusal is Open, and
// the portable layer undoes the request. A full server is Open in any case: it may have carried out the very request
// that it refused.
func classed(op, name string, err error, copies bool) error {
	var doubt uncertainError
	if errors.As(err, &doubt) {
		copies, err = true, doubt.error
	}
	switch {
	case isRefusal(err):
		return &driver.RefusedError{Op: op, Name: name, Err: err, Hint: hintFor(err), Open: copies || isFull(err)}
	case isUnsent(err):
		return &driver.UnavailableError{Op: op, Name: name, Err: err, NotSent: !copies}
	}
	return &driver.UnavailableError{Op: op, Name: name, Err: err}
}

// hintFor says what to do about a refusal.
func hintFor(err error) string {
	switch {
	case isFull(err):
		return "the server has no room: compact and defragment it, and clear the alarm (etcdctl alarm disarm)"
	case codeOf(err) == codes.PermissionDenied:
		return rightsHint
	case codeOf(err) == codes.Unauthenticated, errors.Is(rpctypes.Error(err), rpctypes.ErrUserEmpty),
		strings.Contains(err.Error(), "authentication failed"):
		return "user or password is wrong, or missing"
	}
	return ""
}

const rightsHint = "the user needs to read and write the keys that begin with the prefix"
