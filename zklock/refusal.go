// Errors of requests as the classes of package driver (ADR 0040). outcome.go says what became of a request; acquire.go
// and release.go return what is classed here.

package zklock

import (
	"errors"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// denials are the refusals of servers, and what to do about them.
var denials = []struct {
	err  error
	hint string
}{
	{zk.ErrNoAuth, "see the ACL of the lock's node and of the root: this user needs all rights there"},
	{zk.ErrInvalidACL, "the servers do not take this ACL; acl=creator needs a user"},
	{zk.ErrAuthFailed, "user or password is wrong"},
}

// denialOf reports whether the servers have said no, and what to do about it. Most other refusals are part of the
// protocol: a node is there, or it is not.
func denialOf(err error) (hint string, denied bool) {
	for _, d := range denials {
		if errors.Is(err, d.err) {
			return d.hint, true
		}
	}
	if err != nil && err.Error() == quotaExceeded {
		return "the quota of the root is used up", true
	}
	return "", false
}

// classed returns an error of a request as one of the classes of package driver. A refusal is Open, so that it is
// undone: a request makes several nodes one after the other.
func classed(op, name string, err error) error {
	if hint, denied := denialOf(err); denied {
		return &driver.RefusedError{Op: op, Name: name, Err: err, Hint: hint, Open: true}
	}
	return &driver.UnavailableError{Op: op, Name: name, Err: err, NotSent: errors.As(err, new(noServer))}
}

// noServer says that there was no server to ask, and why. It is a mark of its own beside unreached, because it is taken
// off again when the request has a node from an earlier attempt.
type noServer struct{ error } //nolint:errname // it only marks another

// Unwrap returns why.
func (e noServer) Unwrap() error { return e.error }

// withoutServer removes the mark that nothing was sent, because something was sent before.
func withoutServer(err error) error {
	var none noServer
	if errors.As(err, &none) {
		return none.error
	}
	return err
}
