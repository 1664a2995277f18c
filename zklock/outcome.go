// What an error says about one request: was it carried out, refused, or never sent. call.go decides by it whether the
// connection is sound, refusal.go what the caller is told.
//
// Only a refusal that is listed here counts as an answer. Everything else is taken for a broken connection: the
// connection is cut, and the outcome found out over the next. So an error that is not known yet costs a reconnection
// and never a second hold. A refusal that was missing in the list was once asked again until the time was over.

package zklock

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"

	"github.com/go-zookeeper/zk"
)

// outcome is what is known of a request that has failed.
type outcome uint8

const (
	unknown outcome = iota // it may have been carried out, or may be yet
	refused                // a server has said no, and nothing was changed
	// notSent: it has not left this process, or was turned away unread. Nothing has happened, and it may be sent again.
	notSent
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
	throttled     = "unknown error: -127" // the server has not looked at it
)

// outcomeOf decides what an error says about one attempt at a request. The caller must know whether an earlier attempt
// is under way or has left a node. A broken connection, a session that is over and the end of a context say nothing, so
// they mean unknown.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return unknown
	case slices.ContainsFunc(refusals, func(refusal error) bool { return errors.Is(err, refusal) }),
		slices.Contains(namelessRefusals, innermost(err).Error()):
		return refused
	case errors.As(err, new(unreached)), innermost(err).Error() == throttled, isUnmade(err):
		return notSent
	}
	return unknown
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

// isUnmade reports whether a connection could not be made. The request cannot have left then. A connection that broke
// later says nothing of the kind.
func isUnmade(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, new(*net.DNSError)) ||
		errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError))
}

// isUnimplemented reports whether a server does not know this kind of request.
func isUnimplemented(err error) bool { return err != nil && err.Error() == unimplemented }
