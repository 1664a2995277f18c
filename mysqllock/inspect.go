// What operators see: the locks in use, from the table of tokens and IS_USED_LOCK, and the waits, from the notes that
// statements carry in the server's list of processes. look.go asks for one lock; speaker.go puts the notes in.

package mysqllock

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// record is a row of the table, and which session has its lock at the moment.
type record struct {
	key                  driver.Key
	token, last          uint64 // the first and the last token of its block
	owner, client, label string
	since                time.Time
	session, heldBy      uint64 // session has written the row, heldBy has the lock or is 0
}

// readRecord reads a row of columns, followed by the session that has the lock.
func readRecord(r row) record {
	return record{
		key:   driver.Key{Kind: driver.Kind(r.text(0)), Name: r.text(1)},
		token: r.uint(2), last: r.uint(3), owner: r.text(4), client: r.text(5), label: r.text(6),
		since: time.UnixMicro(int64(r.uint(7))), session: r.uint(8), heldBy: r.uint(9),
	}
}

// holder is what operators see of the session that has the lock. One that has it and has not yet written its row is
// shown by its number alone.
func (r *record) holder() driver.Holder {
	if r.heldBy != r.session {
		return driver.Holder{Client: "connection " + uintText(r.heldBy)}
	}
	return driver.Holder{Owner: r.owner, Client: r.client, Label: r.label, Token: r.token, Weight: 1, Since: r.since}
}

// info is what operators see of a lock that somebody has.
func (r *record) info(waiters []driver.Waiter) driver.LockInfo {
	return driver.LockInfo{
		Kind: r.key.Kind, Name: r.key.Name, Limit: 1, Holders: []driver.Holder{r.holder()},
		Waiters: waiters,
	}
}

// note is what a statement that waits says about itself in a comment, which the server shows in its list of processes.
// It costs no statement of its own, and goes with the one that it is about.
type note struct {
	Kind   driver.Kind `json:"k"`
	Name   []byte      `json:"n"`
	Owner  []byte      `json:"o,omitempty"`
	Client []byte      `json:"c,omitempty"`
	Label  []byte      `json:"l,omitempty"`
}

// waitMark begins the comment. What follows is hexadecimal, so nothing in it can end the comment.
const waitMark = "il1 "

// noteOf writes the note of r as JSON, by hand: with json.Marshal and fmt, the text of a wait took 7 % of the client's
// processor time for a lock that others want too (by pprof).
func noteOf(r *driver.Request) string {
	text := `{"k":"` + string(r.Kind) + `"` + field("n", r.Name) // kinds are words
	for _, f := range [...]struct{ name, value string }{{"o", r.Owner}, {"c", r.Client}, {"l", r.Label}} {
		if f.value != "" {
			text += field(f.name, clip(f.value))
		}
	}
	return text + "}"
}

// field writes one field of a note. base64 needs no escapes in JSON.
func field(name, value string) string {
	return `,"` + name + `":"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"`
}

// readNote reads the note in a statement's text and the name of the lock that it waits for. It reports false for a
// statement of another program, or one that the server has cut off.
func readNote(statement string) (n note, lock string, ok bool) {
	_, rest, found := strings.Cut(statement, "/*"+waitMark)
	digits, rest, closed := strings.Cut(rest, "*/")
	text, err := hex.DecodeString(digits)
	if !found || !closed || err != nil || json.Unmarshal(text, &n) != nil {
		return n, "", false
	}
	_, rest, _ = strings.Cut(rest, "GET_LOCK('")
	lock, _, ok = strings.Cut(rest, "'")
	return n, lock, ok
}

// chunk is how many rows of the table one statement looks at, so that a large table keeps no statement running for
// long.
const chunk = 1000

// Locks reads the table of tokens in steps of a thousand rows, and asks the server about each lock who has it; locks
// that nobody has are left out. Each step costs two round trips, and the list of waits one at the beginning. So it is
// no snapshot: a lock may change hands between two steps. The waiters are in the server's list of processes; a user
// without the right PROCESS sees only those with the same user.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		waits, err := d.listWaits(ctx)
		if err != nil {
			yield(driver.LockInfo{}, d.listError(ctx, prefix, err))
			return
		}
		for after := ""; ; {
			found, next, err := d.listChunk(ctx, prefix, after)
			if d.isUnused(err) {
				return
			}
			if err != nil {
				yield(driver.LockInfo{}, d.listError(ctx, prefix, err))
				return
			}
			for _, r := range found {
				if !yield(r.info(waits[d.idOf(r.key).lock()]), nil) {
					return
				}
			}
			if next == "" {
				return
			}
			after = next
		}
	}
}

// listError gives an error of the caller's context as it is, and every other one as driver.ErrUnavailable.
func (d *Driver) listError(ctx context.Context, prefix string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.core.Unavailable("list", prefix, err)
}

// listChunk returns the locks in use among the next rows, and the id up to which it has looked, or "" at the end. That
// id is read first, without the prefix: it bounds how many rows a step touches, however few of them have the prefix.
func (d *Driver) listChunk(ctx context.Context, prefix, after string) (found []record, next string, err error) {
	where := "id > x'" + after + "'"
	if after == "" {
		where = "TRUE"
	}
	rows, err := d.ask(ctx, fmt.Sprintf("SELECT LOWER(HEX(id)) FROM %s WHERE %s ORDER BY id LIMIT 1 OFFSET %d",
		d.opts.Table, where, chunk-1))
	if err != nil {
		return nil, "", err
	}
	if len(rows) == 1 {
		next = rows[0].text(0)
		where += " AND id <= x'" + next + "'"
	}
	if prefix != "" {
		where += fmt.Sprintf(" AND LEFT(name, %d) = x'%x'", len(prefix), prefix)
	}
	found, err = d.listHeld(ctx, where)
	return found, next, err
}

// listHeld returns the locks in use among some rows of the table. IS_USED_LOCK is NULL for a lock that nobody has.
func (d *Driver) listHeld(ctx context.Context, where string) (found []record, err error) {
	rows, err := d.ask(ctx, fmt.Sprintf("SELECT %[1]s, IS_USED_LOCK(CONCAT('%[2]s', LOWER(HEX(id)))) AS held FROM "+
		"%[3]s WHERE %[4]s HAVING held IS NOT NULL",
		columns, lockPrefix, d.opts.Table, where))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		found = append(found, readRecord(r))
	}
	return found, nil
}

// listWaits returns the waiters of each lock, by the lock's name for GET_LOCK, the one that came first at the
// beginning. Their order is made from how long each statement has lasted: MariaDB counts it in milliseconds, MySQL in
// seconds.
func (d *Driver) listWaits(ctx context.Context) (map[string][]driver.Waiter, error) {
	elapsed := "TIME * 1000"
	d.mu.Lock()
	if isMariaDB(d.settings) {
		elapsed = "TIME_MS"
	}
	d.mu.Unlock()
	rows, err := d.ask(ctx, fmt.Sprintf("SELECT INFO, CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 - %s * 1000 AS SIGNED) "+
		"AS began "+
		"FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT /*%s%%' ORDER BY began, ID", elapsed, waitMark))
	if err != nil {
		return nil, err
	}
	waits := make(map[string][]driver.Waiter)
	for _, r := range rows {
		n, lock, ok := readNote(r.text(0))
		if !ok {
			continue
		}
		waits[lock] = append(waits[lock], driver.Waiter{
			Owner: string(n.Owner), Client: string(n.Client), Label: string(n.Label), Weight: 1,
			Since: time.UnixMicro(int64(r.uint(1))), Position: len(waits[lock]) + 1,
		})
	}
	for lock := range waits {
		waits[lock] = slices.Clip(waits[lock])
	}
	return waits, nil
}
