// Whether a server has dealt with a request, judged by its error. call.go decides by it whether the connection is
// sound, refusal.go what the caller is told.
//
// Only a refusal that is listed here counts as an answer. Everything else is taken for a broken connection: the
// connection is cut, and the outcome found out over the next. So an error that is not known yet costs a reconnection
// and never a second hold. A refusal that was missing in the list was once asked again until the time was over.

package zklock

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// refusals are what a server answers after it has dealt with a request. Those for which the library has no name come as
// texts: an operation that the server does not know, a client that must authenticate first, and a quota that is used
// up.
var (
	refusals = []error{
		zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrBadVersion, zk.ErrNoAuth, zk.ErrInvalidACL,
		zk.ErrAuthFailed,
		zk.ErrBadArguments, zk.ErrNoChildrenForEphemerals, zk.ErrInvalidPath, zk.ErrAPIError,
	}
	namelessRefusals = []string{unimplemented, "unknown error: -124", quotaExceeded}
)

const (
	unimplemented = "unknown error: -6"
	quotaExceeded = "unknown error: -125"
)

// isRefusal reports whether a server has said no, and nothing was changed. After any other error the request may have
// been carried out, or may be yet: a broken connection, a session that is over and the end of a context say nothing.
func isRefusal(err error) bool {
	return err != nil && (slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }) ||
		slices.Contains(namelessRefusals, innermost(err).Error()))
}

// innermost returns the error that err wraps last. The library's nameless errors can be told by their text alone, and a
// wrapped one has more text around it.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// isUnimplemented reports whether a server does not know this kind of request.
func isUnimplemented(err error) bool { return err != nil && err.Error() == unimplemented }
