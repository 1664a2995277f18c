//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import "time"

// Turns: a driver that releases a lock and asks for it again at once may keep it although others wait, until its turn
// is over. Handing over costs a process switch, which is many times a short critical section. The core's local passes
// do that for goroutines that wait at the same time; a turn does it for one that comes back. linger.go keeps the lock
// in between.
//
// Without turns, short holds of many processes reach a small part of what bare flock does. Bare flock hands over only
// when the scheduler happens to, and so starves waiters for long. A turn ends, and the next in line gets in. A longer
// turn brings next to nothing and makes everybody else wait longer.

// pace is the lengths of a turn; tests have others than usualPace.
type pace struct {
	turn time.Duration // how long a turn lasts
	// How soon a driver that released has to ask again: about what a waiter needs to wake up.
	comeback time.Duration
	// How long a Try looks whether the gate becomes free, on locks that several hold at once.
	gate time.Duration
}

func usualPace() pace {
	return pace{turn: time.Millisecond, comeback: 100 * time.Microsecond, gate: 10 * time.Millisecond}
}

// forgets is how long it counts that a driver came back, while it cannot do so because it is not its turn.
const forgets = 20 * time.Millisecond

// turn is kept in the open file, because a driver that comes back finds it among the idle ones.
type turn struct {
	began time.Time // when the lock was got in line, or with nobody waiting
	freed time.Time // when it was last released
	back  bool      // its last holder came back at once

	contended bool      // others waited when the lock was got, or it was got in line
	seen      time.Time // when others were last seen waiting
}

// begin begins a turn: the lock was got in line, or nobody waited.
func (t *turn) begin(now time.Time, contended bool) {
	t.began, t.seen, t.contended = now, time.Time{}, contended
}

// over reports whether waiters come first, however soon the driver comes back.
func (t *turn) over(p pace, now time.Time) bool { return now.Sub(t.began) >= p.turn }

// lasts reports whether the driver may go on before the waiters.
func (t *turn) lasts(p pace, now time.Time) bool {
	return now.Sub(t.freed) < p.comeback && !t.over(p, now)
}

// ask notes that the driver wants the lock. Only the first ask after a release counts: a driver that then has to stand
// in line came back all the same.
func (t *turn) ask(p pace, now time.Time) {
	away := now.Sub(t.freed)
	t.back = away < p.comeback || t.back && away < forgets
}

// free notes the release. A driver that comes late after the end of its turn may do so because others have the
// processor. So that is not taken as a sign.
func (t *turn) free(p pace, now time.Time) {
	t.freed = now
	t.back = t.back && t.over(p, now)
}
