//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import "time"

// A driver that gives a lock back and asks for it again at once may keep it although others wait, until its turn is
// over: handing over costs a process switch, which is many times a short critical section. That is what the core's
// local passes do for goroutines that wait at the same time; this is for one that comes back. See linger.go for how it
// keeps the lock in between.
//
// Without turns, short holds of many processes reach a small part of what bare flock does, which hands over only when
// the scheduler happens to and so starves waiters for long; a turn ends, and the next in line gets in. A longer turn
// brings next to nothing and makes everybody else wait longer.
type pace struct {
	turn time.Duration // how long a turn lasts
	// comeback is how soon who gave back has to ask again. It is about what a waiter needs to wake up.
	comeback time.Duration
	// gate is how long a Try may look whether the gate becomes free, on locks that several hold at once.
	gate time.Duration
}

func usualPace() pace {
	return pace{turn: time.Millisecond, comeback: 100 * time.Microsecond, gate: 10 * time.Millisecond}
}

// forgets is for how long it counts that somebody had come back, if it cannot do so because it is not its turn.
const forgets = 20 * time.Millisecond

// turn is kept in the open file, because a driver that comes back finds it among the idle ones.
type turn struct {
	began time.Time // when the lock was got in line, or with nobody waiting
	freed time.Time // when it was given back
	back  bool      // who gave it back came again at once

	contended bool      // others waited when it was got, or it was got in line
	seen      time.Time // when others were last seen to wait
}

func (t *turn) begin(now time.Time, contended bool) {
	t.began, t.seen, t.contended = now, time.Time{}, contended
}

// over reports whether those who wait come first, however soon the driver comes back.
func (t *turn) over(p pace, now time.Time) bool { return now.Sub(t.began) >= p.turn }

// lasts reports whether the driver may go on before those who wait.
func (t *turn) lasts(p pace, now time.Time) bool {
	return now.Sub(t.freed) < p.comeback && !t.over(p, now)
}

// ask notes that somebody wants the lock. The first one after a release counts: one who has to stand in the line came
// back nonetheless.
func (t *turn) ask(p pace, now time.Time) {
	away := now.Sub(t.freed)
	t.back = away < p.comeback || t.back && away < forgets
}

// free notes the release. Who comes late after the end of its turn may do so because others have the processor then, so
// that it is not taken as a sign.
func (t *turn) free(p pace, now time.Time) {
	t.freed = now
	t.back = t.back && t.over(p, now)
}
