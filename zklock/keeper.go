// The keeper: one goroutine that makes sessions, makes each connection ready, and gives signs of life. session.go has
// the session's state; call.go sends.
//
// A session passes through four states: made (start), connected (handleEvent), ready (makeReady, which sets
// session.link), and over (end). Requests are sent only while it is ready. Between connections it is connected again
// and again, and is made ready each time in the same order: raise the version, let requests in, set watches anew.

package zklock

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
)

// keep is the goroutine that keeps a session while the driver is open: when one is over it makes the next. New starts
// it; Close ends it.
func (d *Driver) keep() {
	defer close(d.kept)
	for d.life.Err() == nil {
		s, err := d.start()
		if err != nil { // no hosts, which New has refused
			d.fail(err)
			return
		}
		d.mu.Lock()
		d.session = s
		d.changed()
		d.mu.Unlock()
		s.keep() // until it is over or the driver is closed
		s.close()
		s.end(errOver) // so that holds are lost also when the driver was closed first
	}
}

// keep gives signs of life, makes connections ready, and has holds watched, until s is over or the driver is closed. It
// must not wait for the servers beyond that: signs of life would be late. One timer serves all young holds: those that
// come meanwhile are looked at together with the first, and once more if they are too young then.
func (s *session) keep() {
	// An hour stands for never: each timer is set when there is something for it.
	heartbeat, guard, again := time.NewTimer(time.Hour), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	for _, timer := range []*time.Timer{heartbeat, guard, again} {
		defer timer.Stop()
	}
	guards, ticks := false, 0
	for {
		select {
		case <-s.over:
			return
		case <-s.d.life.Done():
			return
		case <-heartbeat.C:
			s.retire()
			if ticks++; ticks%eachTick == 0 || s.unanswered.Load() > 0 {
				s.heartbeat()
			}
			heartbeat.Reset(s.pause())
		case <-guard.C:
			guards = false
			s.guard()
		case <-again.C:
			s.wakeKeeper()
		// A new connection, a stale link, or a young hold.
		case <-s.news:
			switch ready, err := s.makeReady(); {
			case err != nil:
				// A connection that has closed says nothing to callers, and the next one wakes the keeper.
				if !errors.Is(err, zk.ErrConnectionClosed) {
					s.d.fail(err)
				}
				pause := retryPause
				if errors.Is(err, errStrangers) {
					pause = strangersPause
				}
				again.Reset(pause)
			case ready:
				heartbeat.Reset(s.pause())
			}
		}
		if !guards && s.hasYoung() {
			guards = true
			guard.Reset(guardAfter)
		}
	}
}

// retryPause is the pause between two attempts to make a connection ready that a server has refused, or answered with
// an error that means nothing to us. The connection itself is sound, so no news would come by themselves, and cutting
// it would help nobody. An operator may give a missing right at any time, and a server with too much to do recovers.
const retryPause = 500 * time.Millisecond

// A sign of life is given each third of the timeout, and each ninth while a request of one is under way. The session is
// trusted from when the last one that was proved was given, and with far servers the answer takes its part of that. So
// does the pause of a proof: where that is large, of a timeout below 9.6 s, they are given each quarter and each
// twelfth.
const (
	eachTick   = 3
	parts      = 3
	shortParts = 4
)

// pause is the time between two looks whether a sign of life is due.
func (s *session) pause() time.Duration {
	if 6*reportLag(s.timeout) > s.timeout {
		return s.timeout / (shortParts * eachTick)
	}
	return s.timeout / (parts * eachTick)
}

// mostUnanswered is how many requests of signs of life are under way at most. The library ends a connection over which
// nothing came for two thirds of the timeout. There are no more signs in that time, of two requests each.
func (s *session) mostUnanswered() int32 { return 2 * int32(s.timeout*2/3/s.pause()) }

// heartbeat gives a sign of life, and has it proved. Another goroutine waits for the answers, because a leader that
// hangs must not keep the next one from being sent.
func (s *session) heartbeat() {
	s.d.mu.Lock()
	l := s.link
	s.d.mu.Unlock()
	if l == nil || s.unanswered.Load() >= s.mostUnanswered() {
		return
	}
	// Ends with the answers or the connection. The library notices if there are none, and stale has the keeper see to
	// a node of the session that is not there any more.
	s.d.spawn(func() { _ = l.prove(s.d.life) })
}

// makeReady fences off earlier connections, see link, and lets requests in. It reports false without an error if there
// is nothing to do. An error means that the connection has gone, or that a server answered with it. A server that hangs
// ends it by the library's own limit, two thirds of the timeout. The link is made from what is known at the beginning,
// and published at the end if the connection is still the same.
func (s *session) makeReady() (ready bool, err error) {
	s.d.mu.Lock()
	l := &link{s: s, turn: s.turn, node: s.node}
	todo := s.linked && s.fresh && s.cause == nil
	s.d.mu.Unlock()
	if !todo {
		return false, nil
	}
	// The first connection makes the session's node; later ones raise its version.
	if l.node == "" {
		if err = s.introduce(l); err == nil {
			err = s.meet(l)
		}
	} else {
		err = s.raise(l)
	}
	if err != nil {
		if errors.Is(err, errOver) || s.endedBy() != nil || s.d.life.Err() != nil {
			return false, nil // nothing is left to do
		}
		return false, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	// Another connection has come meanwhile, with news of its own.
	if !s.linked || s.turn != l.turn || s.cause != nil {
		return false, nil
	}
	again := s.node != ""
	s.node, s.fresh, s.link = l.node, false, l
	// The leader itself has heard of this connection, when it began: it knows all sessions by themselves. Whether it
	// leads is proved by the transaction that introduce or raise has made.
	s.confirm(s.began)
	s.doubted.Store(0) // there was no later attempt: suspended would have come before it
	if s.d.timeout == 0 {
		s.d.timeout = s.timeout
	}
	if again {
		s.rearm()
	}
	s.d.failure = nil
	s.d.changed()
	s.tellConnected(again)
	return true, nil
}

// tellConnected logs a connection, which is news for people only after the loss of the one before.
func (s *session) tellConnected(again bool) {
	level := slog.LevelDebug
	if again {
		level = slog.LevelInfo
	}
	s.d.opts.Logger.Log(s.d.life, level, "zk: connected", "session", s.name(), "timeout", s.timeout, "again", again)
}

// meet has the other servers of the list checked. A session with strangers is not used, and leaves no node behind.
func (s *session) meet(l *link) error {
	err := l.checkEnsemble(s.d.life)
	if errors.Is(err, errStrangers) {
		_ = l.delete(s.d.life, l.node) // otherwise it goes with the session
	}
	return err
}

// introduce authenticates the client and makes the session's node. The order matters: the ACL of the node stands for
// the user that has logged in, so before the login it would be refused.
func (s *session) introduce(l *link) error {
	if o := s.d.opts; o.User != "" && !s.shown {
		_, err := ask(s.d.life, l, func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, c.AddAuth("digest", []byte(o.User+":"+o.Password))
		})
		if err != nil {
			return err
		}
		s.shown = true // the library shows it again after a reconnection
	}
	return s.makeNode(l)
}

// makeNode makes a node of this session's own. Its name is never used twice, so its version means something.
func (s *session) makeNode(l *link) error {
	s.d.mu.Lock()
	s.nodes++
	l.node = s.d.tree.sessions() + "/" + s.name() + "." + strconv.Itoa(s.nodes)
	s.d.mu.Unlock()
	err := l.create(s.d.life, l.node, []byte(s.d.opts.Client), zk.FlagEphemeral)
	if errors.Is(err, zk.ErrNoNode) {
		if err = l.makeFolder(s.d.life, s.d.tree.sessions()); err == nil {
			err = l.create(s.d.life, l.node, []byte(s.d.opts.Client), zk.FlagEphemeral)
		}
	}
	// The version of a new node.
	l.epoch = 0
	return err
}

// raise raises the version of the session's node. From then on, transactions of earlier connections are refused. It
// sets the data that is there already, because every write raises the version. The write is answered by the leader, so
// whatever an earlier connection has left is ordered before it or after it for everybody.
func (s *session) raise(l *link) error {
	stat, err := tell(s.d.life, l, func(c *zk.Conn) (*zk.Stat, error) {
		return c.Set(l.node, []byte(s.d.opts.Client), -1)
	})
	if errors.Is(err, zk.ErrNoNode) { // an operator has removed it
		return s.makeNode(l)
	}
	if err == nil {
		l.epoch = stat.Version
	}
	return err
}

// create makes one node with the driver's ACL.
func (l *link) create(ctx context.Context, path string, data []byte, flags int32) error {
	_, err := tell(ctx, l, func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, l.s.d.opts.ACL) })
	return err
}

// makeFolder makes a node that lasts, and those above it. A server answers "no right" even where the node exists, so
// that is looked up. It is tried before what is above it is looked at, because as a rule only the last part is missing.
func (l *link) makeFolder(ctx context.Context, path string) error {
	err := l.create(ctx, path, nil, 0)
	if errors.Is(err, zk.ErrNoNode) {
		if err = l.makeFolder(ctx, parent(path)); err == nil {
			err = l.create(ctx, path, nil, 0)
		}
	}
	if errors.Is(err, zk.ErrNoAuth) {
		there, asked := ask(ctx, l, func(c *zk.Conn) (bool, error) {
			there, _, err := c.Exists(path)
			return there, err
		})
		if asked == nil && there {
			return nil
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// parent returns the path above path. For "/a" it is "/".
func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "/"
}
