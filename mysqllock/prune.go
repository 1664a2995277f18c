// Removal of rows that nobody needs any more. sqlsession has a shared connection call Prune, after some grants and from
// time to time.

package mysqllock

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// pruneAge is how old a row must be, on the server's clock. Without the row the next token of the lock is the
	// clock's, and so larger by as much.
	pruneAge = 24 * time.Hour

	// together is how many rows one statement removes. They stay locked for as long as it lasts.
	together = 100
)

// Prune removes rows of locks that nobody has used for a day, in a part of the table: a thousand rows from a random
// place on, and from the beginning after the end. So a look costs the same however many rows there are, and clients
// that look need not know of each other. At most it costs thirteen round trips: two looks, ten statements that remove,
// and one for the breaks.
func (s *speaker) Prune() {
	if s.d.opts.ReadOnly {
		return // those who lock do it
	}
	var from lockID
	_, _ = rand.Read(from[:]) // it never returns an error
	old, left, err := s.oldRows("id >= x'"+from.hex()+"'", chunk)
	if err == nil && left > 0 {
		var more []string
		more, _, err = s.oldRows("id < x'"+from.hex()+"'", left)
		old = append(old, more...)
	}
	if err != nil {
		return // the next look finds them
	}
	for some := range slices.Chunk(old, together) {
		if s.run("DELETE FROM "+s.d.opts.Table+" WHERE "+strings.Join(some, " OR ")) != nil {
			return
		}
	}
	// Nothing depends on it: the next look removes what is left.
	_ = s.run(fmt.Sprintf("DELETE FROM %s_breaks WHERE asked < %s - %d", s.d.opts.Table, clock,
		pruneAge.Microseconds()))
}

// oldRows looks at no more than most rows, and returns conditions for those to be removed, and how many rows short of
// most there were.
//
// The condition names the last token. A client that has got the lock of such a row meanwhile has written a new one, so
// the row stays, or finds no row and takes the clock.
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
