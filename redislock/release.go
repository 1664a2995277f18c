package redislock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// shortestTomb is for how long a tombstone refuses at least: requests without a horizon are a
// little while under way too.
const shortestTomb = 10 * time.Second

// Release ends a hold and lets in who waits, in one round trip. It is sent once; after an error that does not match
// driver.ErrLost its outcome is unknown. This driver keeps nothing of the request from then on, whatever the outcome.
// To undo what was never sent costs nothing.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	if d.isClosed() {
		return driver.ErrClosed
	}
	if r.Undo && d.wasNotSent(r.ID) {
		d.over(r.ID)
		return nil
	}
	err := d.release(ctx, r)
	if err == nil || errors.Is(err, driver.ErrLost) {
		d.over(r.ID)
	} else {
		d.unconfirmed(r.ID)
	}
	return err
}

// release asks the server.
func (d *Driver) release(ctx context.Context, r *driver.Release) error {
	q := releasing{args: [4]string{r.ID, d.releaseKind(r), "", keepFor(r)}}
	q.keys, q.call.Slot = d.names.request(r.Key, r.ID)
	q.call.Script, q.call.Keys, q.call.Args = releaseScript, q.keys[:], q.args[:1]
	if q.args[1] != "" || q.args[3] != "0" { // most are plain, and what is not sent costs the server nothing
		q.args[2] = inMillis(max(r.Horizon, shortestTomb))
		q.call.Args = q.args[:]
	}
	d.mayBeWatched(&q.call, r.Key, watchedReleaseScript)
	answer := d.conn.Call(ctx, &q.call)
	if answer.Err != nil {
		return d.unavailable(ctx, "release", r.Key, answer.Err)
	}
	word, reason, _ := strings.Cut(answer.Text, " ")
	switch word {
	case "ok":
		return nil
	case "lost":
		if d.wasReleased(r.ID) {
			reason = "gone"
		}
		return lostError(r.Key, reason)
	case "newer":
		return d.newer("release", r.Key, reason)
	}
	return fmt.Errorf("redis: the answer %q to a release cannot be read", answer.Text)
}

// releasing is the call of one release, with what belongs to it in one piece.
type releasing struct {
	call Call
	keys [3]string
	args [4]string
}

// releaseKind says what the script is to take care of: late copies of the acquire, if there may be any.
func (d *Driver) releaseKind(r *driver.Release) string {
	switch {
	case r.Undo:
		return "u"
	case d.isOpen(r.ID):
		return "r"
	default:
		return ""
	}
}

// keepFor rounds up: the lock is to stay closed for Keep at least.
func keepFor(r *driver.Release) string {
	if r.Keep <= 0 || r.Undo {
		return "0"
	}
	return leaseMillis(r.Keep)
}

func (d *Driver) wasReleased(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone.Has(id)
}

// lostError says how a hold ended that a script did not find.
func lostError(key driver.Key, reason string) error {
	lost := &driver.LostError{Kind: key.Kind, Name: key.Name, Reason: driver.LostExpired}
	switch reason {
	case "gone":
		return errGone(key)
	case "taken":
		lost.Reason = driver.LostTaken
	case "broken":
		lost.Reason = driver.LostBroken
	case "adopted":
		lost.Reason = driver.LostAdopted
	}
	return lost
}

// unavailable is the error of a call that brought no answer, or was refused.
func (d *Driver) unavailable(ctx context.Context, op string, key driver.Key, err error) error {
	return d.callError(ctx, op, key, err, false)
}

// callError is the error of a call for key that ended with err. The end of ctx or of the driver is the better reason.
// With copies, the call may have been made before, so that nobody can say that nothing has happened.
func (d *Driver) callError(ctx context.Context, op string, key driver.Key, err error, copies bool) error {
	switch {
	case d.isClosed():
		return driver.ErrClosed
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return d.sorted(op, key, err, copies)
}
