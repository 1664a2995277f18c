// Requests to the servers: each in a goroutine of its own, with a context, and with what its answer says about the
// session. Everything that talks to ZooKeeper goes through ask, tell or now.
//
// The order of two things is the point of this file. The instant is taken before a request is sent, since the servers
// count from its arrival, which is later. A link is broken before its caller is told, so that the caller does not take
// the same one again. proof.go says which answers confirm the session.

package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// errNoAnswer is the error of a request whose connection broke: whether it was carried out is unknown.
var errNoAnswer = errors.New("zk: the connection broke before the server had answered")

// ask reads something over l. The server of the connection answers from its own memory, so the answer may be old and
// confirms nothing.
func ask[T any](ctx context.Context, l *link, request func(c *zk.Conn) (T, error)) (T, error) {
	return call(ctx, l, false, request)
}

// tell makes a transaction over l. It is carried out when a majority of the ensemble has agreed, so it may confirm the
// session too; see link.heard.
func tell[T any](ctx context.Context, l *link, request func(c *zk.Conn) (T, error)) (T, error) {
	return call(ctx, l, true, request)
}

// call makes a request over l in a goroutine of its own, because the library knows no contexts. When ctx or the session
// ends first, call returns and nobody waits for the answer. The goroutine ends with the answer, or with the connection.
// The request itself goes on, and its outcome is then unknown to the caller, who has to find it out over the next
// connection or undo it.
func call[T any](ctx context.Context, l *link, agreed bool, request func(c *zk.Conn) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	said := make(chan answer, 1) // buffered, so that the goroutine ends in any case
	if !l.s.d.spawn(func() {
		value, err := now(l, agreed, request)
		said <- answer{value, err}
	}) {
		return none, errOver
	}
	select {
	case a := <-said:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-l.s.over:
		return none, errOver
	}
}

// now makes a request in the caller's goroutine. It blocks until the request is answered or the connection has broken.
// agreed says that the request is a transaction, so a success proves that a majority has agreed. A refusal proves
// nothing: some are the word of one server.
func now[T any](l *link, agreed bool, request func(c *zk.Conn) (T, error)) (T, error) {
	sent := time.Now() // trust counts from before the request was sent
	value, err := request(l.s.conn)
	if err = l.took(err); answered(err) {
		l.heard(sent, time.Now(), agreed && err == nil)
	}
	return value, err
}

// took records how a request ended. A failure of the connection makes the link unusable. It is called for every
// request, also for those whose caller has gone: the others must not use that link either. A link that the keeper is
// still making ready is not broken by it: the keeper tries again.
func (l *link) took(err error) error {
	if answered(err) {
		return err
	}
	l.broken()
	return fmt.Errorf("%w: %w", errNoAnswer, err)
}

// answered reports whether err comes from a server that has dealt with the request; nil counts as such.
func answered(err error) bool { return err == nil || isRefusal(err) }

// listing is an answer to Children.
type listing struct {
	names []string
	stat  *zk.Stat
}

// children lists the names below a node. The list has no order. A follower may lag behind the leader, but not behind
// what it has told or done over this connection. That is enough after the event of a watch, and after a raise; others
// call agree before.
func (l *link) children(ctx context.Context, path string) (listing, error) {
	return ask(ctx, l, func(c *zk.Conn) (listing, error) {
		names, stat, err := c.Children(path)
		return listing{names, stat}, err
	})
}

// content is an answer to Get.
type content struct {
	data []byte
	stat *zk.Stat
}

// get reads the data of a node.
func (l *link) get(ctx context.Context, path string) (content, error) {
	return ask(ctx, l, func(c *zk.Conn) (content, error) {
		data, stat, err := c.Get(path)
		return content{data, stat}, err
	})
}

// remove deletes a node, and returns zk.ErrNoNode if it is not there. Any version is deleted. The path is enough: no
// later request has that name, and a lock's own node can be deleted only while it is empty.
func (l *link) remove(ctx context.Context, path string) error {
	_, err := tell(ctx, l, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
	return err
}

// delete makes sure that a node is gone, whoever has deleted it.
func (l *link) delete(ctx context.Context, path string) error {
	err := l.remove(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// read reads a place of the lock at that path, or returns nil if it is gone. It is gone as a rule because its request
// was released between the list and this read.
func (l *link) read(ctx context.Context, lock string, p queuePlace) (*seen, error) {
	got, err := l.get(ctx, lock+"/"+p.name)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if err != nil {
		return nil, err
	}
	return &seen{queuePlace: p, note: parseNote(got.data), stat: got.stat}, nil
}

// Whether a server has dealt with a request, judged by its error.
//
// Only a refusal that is listed here counts as an answer. Everything else is taken for a broken connection: the
// connection is cut, and the outcome found out over the next. So an error that is not known yet costs a reconnection
// and never a second hold. A refusal that was missing in the list was once asked again until the time was over.

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

// Errors of requests as the classes of package driver (docs/rationale.md, Classes of errors). acquire.go and release.go
// return what is classed here.

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

// Goroutines of the driver. Everything that waits for the library runs in one of them.
//
// A request of the library cannot be cancelled: it ends with its answer or with its connection. So a caller whose
// context ends leaves the goroutine behind, and the driver waits for it in Close, when the connection is cut. Workers
// that are kept between requests were tried and gave nothing (docs/rationale.md, Rooms of redislock).

// spawn runs f in a goroutine that Close waits for. If the driver is closed it returns false and does not run f. The
// client library knows no contexts, so each request has a goroutine. closed is read under the same mutex under which
// Close sets it, so nothing joins the group while Close waits for it.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.calls.Go(f)
	return true
}
