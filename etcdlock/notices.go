// Notices: how holds of a living session learn that they have ended. inspect.go leaves notices, session.go triggers the
// look, session.go starts the goroutine.
//
// A notice may be seen twice or late, and anybody may write below a session's prefix. So a notice only makes this
// goroutine read the key of the hold, and the key decides whether there is a loss. A call tells of no loss and is
// believed.

package etcdlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// A hold can end although its session lives: an operator breaks it, or deletes its key. And a session can end although
// this client is well: an operator revokes the lease. Break leaves a notice under a prefix of the session, where there
// is also a key that ends with the lease; that is one watch for all. What was deleted without a notice is found with
// the next sign of life: then the servers are asked for the keys of the lease, in one request.

// watchNotices tells holds that they have ended, until the session is lost or the driver is closed. It is a goroutine
// of the session.
func (s *session) watchNotices(ctx context.Context) {
	w := s.d.listener.watch(&queueView{watch: s.d.names.presence(s.id), wide: true, puts: true, keep: true})
	defer s.d.listener.unwatch(w)
	// If anything was written since, the watch begins at a later revision, and its first hint makes this goroutine
	// read.
	seen, audited := s.began, time.Now() // what was there before began is not news
	for {
		select {
		case <-w.hint:
			created, events := s.d.listener.happened(w)
			// Calls are handled from the events alone. Everything else, and whatever came before the watch had begun,
			// is read.
			if s.heed(events) || created > seen {
				seen = max(seen, s.readNotices(ctx))
			}
		case found := <-s.look:
			if time.Since(audited) >= auditPause {
				audited = time.Now()
				s.audit(ctx)
			}
			// For a notice whose hint came while the server could not be read.
			seen = max(seen, s.notice(ctx, found))
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// auditPause is the shortest time between two audits. Their answer has all keys of the session.
const auditPause = 5 * time.Second

// readPresence reads the session's own keys. The read needs a majority, which beat relies on.
func (s *session) readPresence(ctx context.Context) (*clientv3.GetResponse, error) {
	return s.d.get(ctx, s.d.names.presence(s.id), clientv3.WithPrefix())
}

// readNotices reads the session's own keys and handles what they say. It returns the revision of what it has read, or
// 0.
func (s *session) readNotices(ctx context.Context) int64 {
	limited, cancel := context.WithTimeout(ctx, s.d.opts.RequestTimeout)
	defer cancel()
	found, err := s.readPresence(limited)
	if err != nil {
		return 0
	}
	return s.notice(ctx, found)
}

// notice tells the holds that were broken by what was found of the session's own keys, and removes the notices. It
// returns the revision of what was read.
func (s *session) notice(ctx context.Context, found *clientv3.GetResponse) int64 {
	d := s.d
	ctx, cancel := context.WithTimeout(ctx, d.opts.RequestTimeout)
	defer cancel()
	alive, calls := false, make(map[int64]*mvccpb.KeyValue)
	for _, kv := range found.Kvs {
		if revision, is := d.names.called(s.id, string(kv.Key)); is {
			calls[revision] = kv
			continue
		}
		revision, is := d.names.noticed(s.id, string(kv.Key))
		if !is {
			alive = alive || string(kv.Key) == d.names.alive(s.id)
			continue
		}
		if s.tellBroken(ctx, revision) != nil {
			continue // it is looked at again with the next sign of life
		}
		// If it stays, it tells nothing new, and goes with the session.
		_, _ = d.client.Delete(ctx, string(kv.Key))
	}
	s.noticeCalls(ctx, calls, found.Header.Revision)
	if !alive {
		s.suspect(ctx)
	}
	return found.Header.Revision
}

// suspect asks whether the lease is still there, after its key has gone: an operator may have deleted the key alone.
// With the lease alive the holds are, too, and only the quick word of its end is missing from now on.
func (s *session) suspect(ctx context.Context) {
	life, err := s.d.client.TimeToLive(ctx, s.id)
	if err != nil && isGone(err) || err == nil && life.TTL < 0 {
		s.lose(rpctypes.ErrLeaseNotFound)
	}
}

// tellBroken tells the request whose key was created at that revision that it was broken, unless its key is still
// there. Then the notice is not one of [Driver.Break], which deletes the key in the same transaction, and nobody else
// would get the lock.
func (s *session) tellBroken(ctx context.Context, revision int64) error {
	for _, e := range s.createdBy(revision) {
		found, err := s.d.client.Get(ctx, e.queueKey, clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		if len(found.Kvs) == 0 || found.Kvs[0].CreateRevision != revision {
			e.tellEnded(driver.LostBroken)
		}
	}
	return nil
}

// createdBy returns the requests whose key was created at that revision. It goes through all entries, which is fine for
// a rare event.
func (s *session) createdBy(revision int64) (found []*entry) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	for _, e := range s.d.entries {
		if e.session == s && e.revision == revision {
			found = append(found, e)
		}
	}
	return found
}

// tellEnded tells the caller that the hold has ended.
func (e *entry) tellEnded(reason driver.LostReason) {
	d := e.d
	d.mu.Lock()
	switch {
	case e.ended != "":
		d.mu.Unlock()
		return
	// The release finds out whether it was first. Only a notice proves that somebody else has ended the hold: a key
	// that is merely gone may have been deleted by a copy of the release whose answer was lost.
	case e.released:
		e.broken = e.broken || reason == driver.LostBroken
		d.mu.Unlock()
		return
	}
	e.end(reason)
	tell := e.inform()
	d.mu.Unlock()
	tell(reason, nil) // outside of the mutex: it is the caller's code
}

// inform returns the caller's Lost, if that must be called: at most once, and only after the grant, before which
// Acquire says what has happened. The caller holds Driver.mu, and calls the result without it.
func (e *entry) inform() func(driver.LostReason, error) {
	if !e.granted || e.informed || e.r.Lost == nil {
		return func(driver.LostReason, error) {}
	}
	e.informed = true
	return e.r.Lost
}

// audit finds the holds whose keys are gone without a notice. The list of a lease's keys comes from one member's
// memory, which may be old. So it is only a suspicion, and each key is read before its hold is told. It is rare and not
// part of each sign of life, because the answer has some 100 bytes for each lock.
func (s *session) audit(ctx context.Context) {
	granted := s.granted()
	if len(granted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout/heartbeats)
	defer cancel()
	life, err := s.d.client.TimeToLive(ctx, s.id, clientv3.WithAttachedKeys())
	if err != nil || life.TTL < 0 { // the next sign of life finds out
		return
	}
	for _, key := range life.Keys {
		delete(granted, string(key))
	}
	for key, e := range granted {
		found, err := s.d.client.Get(ctx, key, clientv3.WithKeysOnly())
		if err == nil && (len(found.Kvs) == 0 || found.Kvs[0].CreateRevision != e.revision) {
			s.readNotices(ctx) // which may know a better reason
			e.tellEnded(driver.LostTaken)
		}
	}
}

// granted returns the holds by their keys, or nil if the session is over: then they are lost anyway.
func (s *session) granted() map[string]*entry {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.lost != nil || !time.Now().Before(s.end()) {
		return nil
	}
	all := make(map[string]*entry, len(s.holds))
	for _, e := range s.holds {
		all[e.queueKey] = e
	}
	return all
}
