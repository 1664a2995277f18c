// Renew, the renewal of many holds in few scripts. The scheduler of the portable layer calls it; the answers end in its
// done, and reply letters are described in scripts/renew.lua.

package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// batchSize is the capacity of one script, about half a millisecond of the server's time. Each hold counts for one, and
// for two if the hold before is of the same lock: the two share that lock's record, which costs the server more.
const batchSize = 250

// Renew renews the batch, with one script for up to 250 holds (one for each hold in a Cluster), all in one pipeline to
// each node. It blocks until each entry is answered or ctx ends, and calls done exactly once for each, from any
// goroutine. An error that matches driver.ErrLost says that the hold is over; after any other error the renewal may
// have happened.
func (d *Driver) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	if d.isClosed() {
		for i := range batch {
			done(i, driver.ErrClosed)
		}
		return
	}
	groups := d.group(batch)
	// A renewal may run twice: what a late copy does not lengthen it leaves as it is (see renewed of renew.lua). So
	// what a broken connection left open is sent once more, over a new one.
	if broken := d.renewGroups(ctx, batch, groups, done, true); len(broken) > 0 {
		d.renewGroups(ctx, batch, broken, done, false)
	}
}

// renewGroups sends a script for each group. With again it calls done for no member of a group whose connection broke,
// and returns these groups.
func (d *Driver) renewGroups(
	ctx context.Context, batch []driver.Renewal, groups []group, done func(i int, err error), again bool,
) (broken []group) {
	calls := make([]Call, len(groups))
	for i, g := range groups {
		calls[i] = d.renewal(batch, g)
	}
	var mu sync.Mutex // guards broken
	// Batch calls this function once for each script, from any goroutine.
	d.conn.Batch(ctx, calls, func(n int, r Reply) {
		if again && d.mayRepeat(ctx, r.Err) {
			mu.Lock()
			defer mu.Unlock()
			broken = append(broken, groups[n])
			return
		}
		var lost []int
		for at, i := range groups[n].members {
			if r.Err == nil && at < len(r.Text) && r.Text[at] == 'l' {
				lost = append(lost, i)
			} else {
				done(i, d.renewed(ctx, &batch[i], r, at))
			}
		}
		d.tellLost(ctx, batch, lost, done)
	})
	return broken
}

// group is what one script renews: members are positions in the batch.
type group struct {
	slot    uint16
	members []int
}

// group splits the batch. In a Cluster each hold has a script of its own, and not only because the keys of a script
// must be of one slot. While the slot moves, its keys are on two nodes. A script with several of them is refused
// (TRYAGAIN) for as long as that takes, which may be longer than a lease.
func (d *Driver) group(batch []driver.Renewal) []group {
	size := batchSize
	if d.conn.Sharded() {
		size = 1
	}
	groups := make([]group, 0, (len(batch)+size-1)/size)
	room := 0 // what the last group still takes
	for i := range batch {
		weight := 1
		if i > 0 && batch[i].Key == batch[i-1].Key {
			weight = 2
		}
		if room < weight {
			g := group{members: make([]int, 0, min(size, len(batch)-i))}
			if size == 1 {
				_, g.slot = d.names.lock(batch[i].Key)
			}
			groups = append(groups, g)
			room = size
		}
		room -= weight
		last := &groups[len(groups)-1]
		last.members = append(last.members, i)
	}
	return groups
}

// renewal is the script that renews a group.
func (d *Driver) renewal(batch []driver.Renewal, g group) Call {
	c := Call{
		Script: renewScript, Slot: g.slot,
		Args:     make([]string, 0, 4*len(g.members)),
		Replicas: d.opts.Replicas, ReplicaTimeout: d.opts.ReplicaTimeout,
	}
	var lease time.Duration
	var millis string // the text of lease, which is mostly the same for all
	keys, holders := d.textsOf(batch, g)
	c.Keys = keys
	for n, i := range g.members {
		b := &batch[i]
		if millis == "" || lease != b.Lease {
			lease, millis = b.Lease, leaseMillis(b.Lease)
		}
		c.Args = append(c.Args, b.ID, millis, strconv.Itoa(b.Pass), holders[n])
	}
	return c
}

// usualText is about how many bytes a key and its holder's META have together. It sizes the buffer; more only costs a
// copy.
const usualText = 128

// textsOf returns the keys of a group and the META of their holders. All are cut from one string, as in names.request:
// a client with very many locks sends megabytes of them again and again.
func (d *Driver) textsOf(batch []driver.Renewal, g group) (keys, holders []string) {
	client, marks := d.clientAndMarks(batch, g)
	texts, ends := make([]byte, 0, usualText*len(g.members)), make([]int, 0, 2*len(g.members))
	for n, i := range g.members {
		b := &batch[i]
		texts = d.names.appendLock(texts, b.Key)
		ends = append(ends, len(texts))
		m := meta{marks[n], b.Owner, client, b.Label}
		// No owner holds a retained lock, so none is shown.
		if b.Retained {
			m.Retention, m.Owner = retained, ""
		}
		texts = appendMeta(texts, m)
		ends = append(ends, len(texts))
	}
	keys, holders = make([]string, len(g.members)), make([]string, len(g.members))
	all, begin := string(texts), 0
	for n := range g.members {
		key, holder := ends[2*n], ends[2*n+1]
		keys[n], holders[n] = all[begin:key], all[key:holder]
		begin = holder
	}
	return keys, holders
}

// clientAndMarks returns what a renewal does not carry and the server must keep: the client's name, and which holds may
// be retained. It takes Driver.mu once for the whole group.
func (d *Driver) clientAndMarks(batch []driver.Renewal, g group) (client string, marks []retention) {
	marks = make([]retention, len(g.members))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.marks {
		for n, i := range g.members {
			if e := d.entries[batch[i].ID]; e != nil && e.marked {
				marks[n] = mayRetain
			}
		}
	}
	return d.client, marks
}

// renewed turns the answer r into the outcome of one renewal, whose letter is at that index.
func (d *Driver) renewed(ctx context.Context, b *driver.Renewal, r Reply, at int) error {
	switch {
	case r.Err != nil:
		return d.unavailable(ctx, "renew", b.Key, r.Err)
	case at >= len(r.Text):
		return errors.New("redis: the answer " + strconv.Quote(r.Text) + " to a renewal cannot be read")
	case r.Text[at] == 'n':
		return errNewer("")
	case r.Text[at] == 'w': // others wait for the lock: the push that said so was lost, or found no marked hold
		(*listener)(d).wanted(b.ID)
	case r.Text[at] != 'k':
		return lostError(b.Key, "")
	}
	// The renewal happened on the primary, but a failover could forget it, so the trust must not grow.
	if r.Acked < d.opts.Replicas {
		return &driver.UnavailableError{Op: "renew", Name: b.Name, Err: d.tooFewReplicas(r.Acked)}
	}
	return nil
}

// tellLost asks how holds ended that a renewal has not found, by releases that find nothing: one round trip more, for
// better reasons. The holds are over whatever the answers are, so no error of these calls counts. They travel together:
// a server that was restarted without its memory has forgotten all at once.
func (d *Driver) tellLost(ctx context.Context, batch []driver.Renewal, lost []int, done func(i int, err error)) {
	calls := make([]Call, len(lost))
	for n, i := range lost {
		var q releasing
		d.write(&q, &driver.Release{Key: batch[i].Key, ID: batch[i].ID}, false)
		calls[n] = q.call
	}
	if len(calls) == 0 {
		return
	}
	d.conn.Batch(ctx, calls, func(n int, r Reply) {
		b := &batch[lost[n]]
		err := d.released(ctx, &driver.Release{Key: b.Key, ID: b.ID}, r)
		d.buryRequest(b.ID)
		if !errors.Is(err, driver.ErrLost) {
			err = lostError(b.Key, "")
		}
		done(lost[n], err)
	})
}

// Confirm, which only package redlock uses: it gives the tokens that a majority agreed on to a hold of this server.

// Confirmation is the argument of [Driver.Confirm].
type Confirmation struct {
	driver.Key
	ID     string        // of the hold
	Lease  time.Duration // how long the hold lasts from now
	Token  uint64        // the first of the block
	Tokens int           // how many there are in it, at least 1
}

// Confirm extends a hold to its lease from now, as Renew does, and replaces its tokens by ones that were chosen
// elsewhere. The server's later tokens are greater than these; tokens smaller than its own are set all the same. It is
// for locks that several servers keep together; see package redlock. It costs one round trip.
//
// An error that matches driver.ErrLost says that there is no such hold; after any other error the outcome is unknown.
func (d *Driver) Confirm(ctx context.Context, c *Confirmation) error {
	if d.isClosed() {
		return driver.ErrClosed
	}
	keys, slot := d.names.request(c.Key, c.ID)
	// A block is stored by its first and its last token.
	last := c.Token + uint64(max(c.Tokens, 1)) - 1
	answer := d.conn.Call(ctx, &Call{
		Script: confirmScript, Slot: slot, Keys: keys[:],
		Args:     []string{c.ID, leaseMillis(c.Lease), digits(c.Token), digits(last)},
		Replicas: d.opts.Replicas, ReplicaTimeout: d.opts.ReplicaTimeout,
	})
	if answer.Err != nil {
		return d.unavailable(ctx, "confirm", c.Key, answer.Err)
	}
	word, reason, _ := strings.Cut(answer.Text, " ")
	switch {
	case word == "lost":
		return lostError(c.Key, reason)
	case word == "newer":
		return d.newer("confirm", c.Key, reason)
	case word != "ok":
		return fmt.Errorf("redis: the answer %q to a confirmation cannot be read", answer.Text)
	// The hold was extended at the primary alone, so a failover could forget that.
	case answer.Acked < d.opts.Replicas:
		return &driver.UnavailableError{Op: "confirm", Name: c.Name, Err: d.tooFewReplicas(answer.Acked)}
	}
	return nil
}

// digits writes a token with leading zeros, 16 digits wide, because the scripts compare tokens as strings.
func digits(token uint64) string {
	s := strconv.FormatUint(token, 10)
	return strings.Repeat("0", max(16-len(s), 0)) + s
}
