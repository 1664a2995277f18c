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
	"time"

	"github.com/go-zookeeper/zk"
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
