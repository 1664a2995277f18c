// Plain releases that a failover may have forgotten, where replicas are waited for. release.go notes them here, and
// notices.go says when a connection has broken.

package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A plain release does not wait for the replicas: the next owner would wait too, and loses nothing. Nor does the undo
// of what somebody has given up: with a replica missing it would be repeated for minutes, by each of thousands who
// waited. A failover that forgets one brings back a hold or a place of which nobody knows any more: the hold closes the
// lock until its lease ends. So whatever was released lately is released once more when a connection has broken. The
// IDs are never used again, so that does nothing where nothing was forgotten.
const (
	mostReleasedAgain = 1024        // how many of the latest are noted
	releasedLately    = time.Minute // which is longer than a failover takes
)

// latestReleases are noted in a ring.
type latestReleases struct {
	mu    sync.Mutex // guards what follows
	ring  []releasedHold
	next  int         // where the next one goes, when the ring is full
	timer *time.Timer // nil until a connection has broken
	ended bool
}

// releasedHold is one of them.
type releasedHold struct {
	key driver.Key
	id  string
	at  time.Time
}

// note notes a release.
func (l *latestReleases) note(key driver.Key, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := releasedHold{key, id, time.Now()}
	if len(l.ring) < mostReleasedAgain {
		l.ring = append(l.ring, r)
		return
	}
	l.ring[l.next] = r
	l.next = (l.next + 1) % mostReleasedAgain
}

// repeat has them released again soon. It does not block.
func (l *latestReleases) repeat(d *Driver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ended || len(l.ring) == 0:
	case l.timer == nil:
		l.timer = time.AfterFunc(retry, func() { l.releaseAgain(d) })
	default:
		l.timer.Reset(retry)
	}
}

// stop ends that. A call under way ends with its connection.
func (l *latestReleases) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// releaseAgain releases them once more, in the goroutine of the timer. While one is not answered, it does so again.
func (l *latestReleases) releaseAgain(d *Driver) {
	l.mu.Lock()
	var calls []Call
	for _, r := range l.ring {
		if time.Since(r.at) < releasedLately {
			keys, slot := d.names.request(r.key, r.id)
			c := Call{Script: releaseScript, Slot: slot, Keys: keys[:], Args: []string{r.id}}
			d.mayBeWatched(&c, r.key, watchedReleaseScript)
			calls = append(calls, c)
		}
	}
	l.mu.Unlock()
	if len(calls) == 0 {
		return
	}
	//nolint:forbidigo // for many releases, whose callers have returned
	ctx, cancel := context.WithTimeout(context.Background(), heartbeatEvery)
	var failed sync.Once
	again := false
	d.conn.Batch(ctx, calls, func(_ int, r Reply) {
		if r.Err != nil && !isFinal(r.Err) {
			failed.Do(func() { again = true })
		}
	})
	cancel()
	if again {
		l.repeat(d)
	}
}
