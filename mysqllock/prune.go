package mysqllock

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// pruneAge is how old a row must be, on the server's clock. The next token of the lock is larger without it, by as
	// much.
	pruneAge = 24 * time.Hour

	// together is how many rows one statement removes. They are locked for as long as it lasts.
	together = 100
)

// Prune removes rows of locks that nobody has used for a day, of a part of the table: a thousand rows from any place
// on, and from the beginning after the end. So a look costs the same however many rows there are, and those who look
// need not know of each other.
func (s *speaker) Prune() {
	var from lockID
	_, _ = rand.Read(from[:]) // it never fails
	old, left, err := s.oldRows("id >= x'"+from.hex()+"'", chunk)
	if err == nil && left > 0 {
		var more []string
		more, _, err = s.oldRows("id < x'"+from.hex()+"'", left)
		old = append(old, more...)
	}
	if err != nil {
		return // another time
	}
	for some := range slices.Chunk(old, together) {
		if s.run("DELETE FROM "+s.d.opts.Table+" WHERE "+strings.Join(some, " OR ")) != nil {
			return
		}
	}
	// another time
	_ = s.run(fmt.Sprintf("DELETE FROM %s_breaks WHERE asked < %s - %d", s.d.opts.Table, clock,
		pruneAge.Microseconds()))
}

// oldRows looks at most at so many rows, and returns conditions for those to be removed, and how many were not there.
// Who has got the lock of one meanwhile has written a new last token, or finds no row and takes the clock.
func (s *speaker) oldRows(where string, most int) (old []string, left int, err error) {
	rows, err := s.query(fmt.Sprintf("SELECT LOWER(HEX(id)), last, last < %s - %d AND IS_FREE_LOCK(CONCAT('%s', "+
		"LOWER(HEX(id)))) FROM %s WHERE %s ORDER BY id LIMIT %d",
		clock, pruneAge.Microseconds(), lockPrefix, s.d.opts.Table, where, most))
	for _, r := range rows {
		if r.uint(2) == 1 {
			old = append(old, "id = x'"+r.text(0)+"' AND last = "+r.text(1))
		}
	}
	return old, most - len(rows), err
}
