// Errors of requests as the classes of package driver (docs/rationale.md, Classes of errors). outcome.go says what
// became of a request.

package etcdlock

import (
	"errors"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
)

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
