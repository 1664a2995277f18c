package play

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/exhibit/d17queue"
)

// recipe is a process's lock by the recipe of the exhibit.
type recipe struct {
	conn *zk.Conn
	lock *d17queue.Lock
}

// followRecipe carries out one order about the recipe.
func (s *server) followRecipe(ctx context.Context, o *order) *report {
	var err error
	r := &report{OK: true}
	switch l := s.recipe.lock; o.Do {
	case "session":
		err = s.openSession(o)
	case "enter":
		if err = l.Lock(ctx); err == nil {
			r.Node, r.Nonce = l.Node(), l.Node()
			r.Token, err = s.recipe.created()
		}
		s.goods.stamp = fence.Stamp{Token: r.Token, Nonce: r.Nonce}
	case "node":
		r.Node = l.Node()
		r.N, err = s.recipe.looks()
	case "exit":
		err = l.Unlock()
	}
	if err != nil {
		return said(err)
	}
	return r
}

// openSession opens the session. Its end is told to a channel that nobody reads, as in a program that does without.
func (s *server) openSession(o *order) error {
	conn, _, err := zk.Connect([]string{o.URL}, time.Duration(o.Lease)*time.Millisecond, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	s.recipe = recipe{conn, &d17queue.Lock{
		Conn: conn, Dir: o.Name,
		Tell:     func(command, answer string) { s.send(&report{Command: command, Answer: answer}) },
		Watching: func() { s.send(&report{Queues: true}) },
	}}
	return nil
}

// created returns the number of the transaction that made the process's node. It grows from one node to the next.
func (r *recipe) created() (uint64, error) {
	there, stat, err := r.conn.Exists(r.lock.Node())
	if err == nil && !there {
		err = zk.ErrNoNode
	}
	if err != nil {
		return 0, err
	}
	return uint64(stat.Czxid), nil //nolint:gosec // it is positive
}

// looks returns 1 if the process's node is there. After a long stop the library has to connect first, and says no
// before.
func (r *recipe) looks() (int64, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		there, _, err := r.conn.Exists(r.lock.Node())
		switch {
		case err != nil:
		case there:
			return 1, nil
		default:
			return 0, nil
		}
	}
	return 0, zk.ErrNoServer
}
