package pglock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A lock that was just held by others is most likely held by others again, so for a moment it is not tried for: it is waited
// for at once, and without a note. That saves the busiest locks two statements of three for each hand-off.
const (
	// hotFor is how long after a refusal.
	hotFor = 20 * time.Millisecond

	// noteAfter is how long such a wait may go on unnoticed. By then it has long reached the server's queue.
	noteAfter = 2 * time.Millisecond

	// hotKnown is how long a caller who gives up before the note may be told that the lock is held.
	hotKnown = 100 * time.Millisecond
)

// tellIfHot tells a caller whose context ends before the note that the lock is held: a moment ago it was.
func (e *entry) tellIfHot() {
	d := e.d
	d.mu.Lock()
	tell := e.told == nil && e.phase == waiting && e.heated != 0 && d.clock()-e.heated < hotKnown
	d.mu.Unlock()
	if tell {
		e.tell(&driver.HeldError{Kind: e.r.Kind, Name: e.r.Name})
	}
}

// noteOn notes the wait on c, and tells who is in the way, over a shared connection.
func (e *entry) noteOn(shared, c *conn) {
	found, err := shared.exec(stmtNote, e.noteParams(c, e.number())...)
	if !isBroken(err) {
		e.tell(e.inTheWay(found))
	}
}

func (e *entry) noteParams(c *conn, num int64) [][]byte {
	return [][]byte{int8Value(num), textValue(e.r.Owner), textValue(e.r.Client), textValue(e.r.Label), int4Value(c.pid)}
}

// inTheWay reads the answer to stmtNote.
func (e *entry) inTheWay(found rows) *driver.HeldError {
	if len(found) != 1 {
		return &driver.HeldError{Kind: e.r.Kind, Name: e.r.Name}
	}
	r := found[0]
	return heldOf(e.r.Key, r[1], r[2], uint64(int64Of(r[0])), r[3], r[4], r[5])
}
