// Errors of requests as the classes of package driver (docs/rationale.md, Classes of errors). answer.go says whether a
// server has dealt with a request; acquire.go and release.go return what is classed here.

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
	return &driver.UnavailableError{Op: op, Name: name, Err: err, NotSent: errors.As(err, new(unreached))}
}

// unreached says that there was no server to send a request to, and why.
type unreached struct{ error }

// Unwrap returns why.
func (e unreached) Unwrap() error { return e.error }

// outOfReach is the error of a request that has found no server in time: the latest reason that is known.
func (d *Driver) outOfReach() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.failure
	if err == nil && d.session != nil {
		err = d.session.line.failure()
	}
	if err == nil {
		err = errors.New("zk: no server answers")
	}
	return unreached{err}
}

// maybeSent removes the mark unreached from err, because an earlier attempt may have been sent.
func maybeSent(err error) error {
	var mark unreached
	if errors.As(err, &mark) {
		return mark.error
	}
	return err
}
