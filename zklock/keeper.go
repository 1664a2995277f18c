package zklock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
)

// keep is the goroutine that keeps a session as long as the driver is open: when one is over it makes the next.
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
		s.keep()
		s.close()
		s.end(errOver)
	}
}

// keep gives signs of life, makes connections ready and has holds watched, until s is over or the driver is closed.
func (s *session) keep() {
	heartbeat, guard, again := time.NewTimer(time.Hour), time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer heartbeat.Stop()
	defer guard.Stop()
	defer again.Stop()
	guards, ticks := false, 0
	for {
		select {
		case <-s.over:
			return
		case <-s.d.life.Done():
			return
		case <-heartbeat.C:
			if ticks++; ticks%eachTick == 0 || s.unanswered.Load() > 0 {
				s.heartbeat()
			}
			heartbeat.Reset(s.pause())
		case <-guard.C:
			guards = false
			s.guard()
		case <-again.C:
			s.wakeKeeper()
		case <-s.news:
			switch ready, err := s.makeReady(); {
			case err != nil:
				s.d.fail(err)
				again.Reset(retryPause)
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

// retryPause is between two attempts to make a connection ready that a server has refused.
const retryPause = 500 * time.Millisecond

// Signs of life are given each third of the timeout, and each ninth while one is under way: the session is trusted from
// when the last answered one was sent, and far from the servers the answer takes its part of that. There are no more of
// them than the library waits for: it ends a connection over which nothing came for two thirds of the timeout.
const (
	eachTick       = 3
	mostHeartbeats = 6
)

// pause is between two looks whether a sign of life is to be given.
func (s *session) pause() time.Duration { return s.timeout / (3 * eachTick) }

// heartbeat gives a sign of life. It goes to the leader of an ensemble, because a follower that has lost its leader
// goes on answering what it knows by itself, while the leader ends its sessions.
func (s *session) heartbeat() {
	s.d.mu.Lock()
	l := s.link
	s.d.mu.Unlock()
	if l == nil || s.unanswered.Load() >= mostHeartbeats {
		return
	}
	s.unanswered.Add(1)
	if !s.d.spawn(func() { // ends with the answer or the connection
		defer s.unanswered.Add(-1)
		_ = l.sync(s.d.life) // its answer confirms the session; that there is none is what the library notices
	}) {
		s.unanswered.Add(-1)
	}
}

// settleTime is what the library gets to say its watches again after a reconnection, before anything else is sent: it
// reads the last transaction that it knows of without a lock (go-zookeeper v1.0.4, sendSetWatches).
const settleTime = time.Millisecond

// makeReady fences off earlier connections, see link, and lets requests in. It reports false if there is nothing to do,
// or no connection any more. A server that hangs ends it by the library's own limit, two thirds of the timeout.
func (s *session) makeReady() (ready bool, err error) {
	s.d.mu.Lock()
	l := &link{s: s, turn: s.turn, node: s.node}
	todo := s.linked && s.fresh && s.cause == nil
	s.d.mu.Unlock()
	if !todo {
		return false, nil
	}
	if l.node == "" {
		err = s.introduce(l)
	} else {
		time.Sleep(settleTime)
		err = s.raise(l)
	}
	if err != nil {
		if errors.Is(err, errNoAnswer) || errors.Is(err, errOver) || s.d.life.Err() != nil {
			return false, nil // there will be other news
		}
		return false, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if !s.linked || s.turn != l.turn || s.cause != nil {
		return false, nil
	}
	again := s.node != ""
	s.node, s.fresh, s.link = l.node, false, l
	if s.d.timeout == 0 {
		s.d.timeout = s.timeout
	}
	if again {
		s.rearm()
	}
	s.d.failure = nil
	s.d.changed()
	s.d.opts.Logger.Info("zk: connected", "session", s.name(), "timeout", s.timeout, "again", again)
	return true, nil
}

// introduce shows who we are and makes the session's node.
func (s *session) introduce(l *link) error {
	if o := s.d.opts; o.User != "" && !s.shown {
		_, err := tell(s.d.life, l, func(c *zk.Conn) (struct{}, error) {
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
	l.epoch = 0
	return err
}

// raise raises the version of the session's node.
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

func (l *link) create(ctx context.Context, path string, data []byte, flags int32) error {
	_, err := tell(ctx, l, func(c *zk.Conn) (string, error) { return c.Create(path, data, flags, l.s.d.opts.ACL) })
	return err
}

// makeFolder makes a node that lasts, and those above it. A user who may not make a node learns that also where there
// is one already.
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

// parent returns the path above path; that of "/a" is "/".
func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return "/"
}
