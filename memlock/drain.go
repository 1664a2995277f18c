package memlock

import (
	"slices"
	"time"
)

// What happens after every change: the queue is granted from its head for as long as the head fits.

// drain grants from the head of the queue for as long as the head fits, and removes the lock when nobody uses it any
// more. A head that does not fit keeps everybody behind it waiting: that is what makes the queue fair.
func (s *state) drain(now time.Time, l *lock) {
	for len(l.queue) > 0 {
		head := l.queue[0]
		switch v, own := l.judge(head.demand(), nil); {
		// It was an upgrade, and its upgradeable read has been released.
		case v == stuck:
			s.refuseWaiting(l, head, errStuck(&head.req))
		case v == orphaned:
			s.refuseWaiting(l, head, s.howEnded(head.demand()))
		case v == reenters || l.fits(&head.req, own):
			s.grantWaiting(now, l, head)
			s.follow(now, l, head)
		default:
			return
		}
	}
	// The lock's tokens must stay above those that it gave, so they raise the store's floor.
	if len(l.groups) == 0 {
		s.floor = max(s.floor, l.last)
		delete(s.locks, l.key)
	}
}

// follow looks again at the other waiting requests of the owner of a new hold. They re-enter now; where they stand they
// might wait for their own owner.
func (s *state) follow(now time.Time, l *lock, first *record) {
	if !first.req.Named {
		return
	}
	for _, rec := range slices.Clone(l.queue) {
		if !rec.req.Named || rec.req.Owner != first.req.Owner {
			continue
		}
		switch v, _ := l.judge(rec.demand(), nil); v {
		case reenters:
			s.grantWaiting(now, l, rec)
		case upgrades:
			l.dequeue(rec)
			l.enqueue(rec)
		case stuck:
			s.refuseWaiting(l, rec, errStuck(&rec.req))
		case queues, orphaned:
		}
	}
}

// grantWaiting grants a request out of its queue, and notes the answer for its call.
func (s *state) grantWaiting(now time.Time, l *lock, rec *record) {
	s.leave(l, rec)
	s.grant(now, l, rec)
	s.settled = append(s.settled, settlement{ref: rec.ref, rec: rec})
}

// refuseWaiting refuses a waiting request, and notes the answer for its call.
func (s *state) refuseWaiting(l *lock, rec *record, err error) {
	s.leave(l, rec)
	delete(s.records, rec.ref)
	s.settled = append(s.settled, settlement{ref: rec.ref, err: err})
}

// leave takes rec out of its queue.
func (s *state) leave(l *lock, rec *record) {
	l.dequeue(rec)
	s.queued--
}
