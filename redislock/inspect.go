// Listing and reading locks, for operators. stored.go reads what a lock looks like in the store; look.go reads a single
// lock.

package redislock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// Locks finds locks with SCAN on each primary. Its time grows with the number of all keys of the deployment; the steps
// do not block the server. Each lock that it finds is read by itself, so the list is no snapshot. If another program
// has stored something under a lock's key, the lock is marked (driver.LockInfo.Unreadable), and the value is never
// shown. An error is yielded last.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		nodes, err := d.conn.Nodes(ctx)
		if err != nil {
			yield(driver.LockInfo{}, d.unavailable(ctx, "list", driver.Key{Name: prefix}, err))
			return
		}
		seen := make(map[string]bool) // SCAN may return a key twice
		for _, node := range nodes {
			if !d.scan(ctx, node, prefix, seen, yield) {
				return
			}
		}
	}
}

// scan yields the locks on one node. It reports whether to go on. A page of SCAN may be empty or repeat keys; only the
// cursor "0" ends the list.
func (d *Driver) scan(ctx context.Context, node Node, prefix string, seen map[string]bool,
	yield func(driver.LockInfo, error) bool,
) bool {
	// The prefix of the driver and that of the names may have characters that SCAN takes for a pattern.
	pattern := globQuote(d.names.prefix) + "*:" + globQuote(prefix) + "*"
	cursor := "0"
	for {
		page, err := node.Do(ctx, "SCAN", cursor, "MATCH", pattern, "COUNT", "500")
		next, names, ok := scanned(page)
		if err == nil && !ok {
			err = fmt.Errorf("the answer to SCAN cannot be read")
		}
		if err != nil {
			yield(driver.LockInfo{}, d.unavailable(ctx, "list", driver.Key{Name: prefix}, err))
			return false
		}
		var keys []driver.Key
		for _, name := range names {
			// The pattern of SCAN matches too much, so each name is checked here.
			if key, is := d.names.lockOf(name); is && strings.HasPrefix(key.Name, prefix) && !seen[name] {
				seen[name] = true
				keys = append(keys, key)
			}
		}
		for i, found := range d.look(ctx, keys) {
			// The lock may have become free between SCAN and the look.
			found = found.listed(keys[i])
			if found.err != nil || found.inUse {
				if !yield(found.info, found.err) || found.err != nil {
					return false
				}
			}
		}
		if cursor = next; cursor == "0" {
			return true
		}
	}
}

// scanned splits an answer to SCAN into the next cursor and the keys.
func scanned(page any) (cursor string, names []string, ok bool) {
	parts, _ := page.([]any)
	if len(parts) != 2 {
		return "", nil, false
	}
	cursor, ok = parts[0].(string)
	list, _ := parts[1].([]any)
	for _, item := range list {
		name, _ := item.(string)
		names = append(names, name)
	}
	return cursor, names, ok
}

// globQuote makes a pattern that matches only s. The prefix of the user may have characters that MATCH would interpret.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// sight is what look found of one lock.
type sight struct {
	info   driver.LockInfo
	tokens []int // the size of each holder's block of tokens
	inUse  bool
	err    error
}

// listed is the sight as a list shows it: one key that cannot be read must not end the list. An error that says nothing
// of other keys' locks becomes a line; any other error stays.
func (s sight) listed(key driver.Key) sight {
	if s.err == nil || !errors.Is(s.err, errForeign) && !errors.Is(s.err, driver.ErrConflict) && !isOfOneKey(s.err) {
		return s
	}
	why := s.err.Error()
	if errors.Is(s.err, errForeign) {
		why = errForeign.Error()
	}
	return sight{info: driver.LockInfo{Kind: key.Kind, Name: key.Name, Unreadable: why}, inUse: true}
}

// isOfOneKey reports whether the error says that the user may not read this key. That says nothing of other keys.
func isOfOneKey(err error) bool {
	text := err.Error()
	return driver.Refusal(err) != nil && strings.Contains(text, "NOPERM") && strings.Contains(text, " key")
}

// look reads locks, each by a script of its own, in one pipeline per node.
func (d *Driver) look(ctx context.Context, keys []driver.Key) []sight {
	sights, read := make([]sight, len(keys)), make([]pages, len(keys))
	calls, of := make([]Call, len(keys)), make([]int, len(keys))
	for i, key := range keys {
		name, slot := d.names.lock(key)
		calls[i], of[i] = Call{Script: lookScript, Slot: slot, Keys: []string{name}}, i
	}
	for len(calls) > 0 {
		d.conn.Batch(ctx, calls, func(n int, r Reply) {
			i := of[n]
			if r.Err != nil {
				read[i].next, sights[i].err = nil, d.unavailable(ctx, "look at", keys[i], r.Err)
				return
			}
			if read[i].add(r.Text); read[i].next == nil {
				sights[i] = d.seen(keys[i], &read[i])
			}
		})
		// Those that have further pages; there are few.
		var more []Call
		var whose []int
		for n, i := range of {
			if next := read[i].next; next != nil {
				calls[n].Args = next
				more, whose = append(more, calls[n]), append(whose, i)
			}
		}
		calls, of = more, whose
	}
	return sights
}

// LookTokens reads one lock, in one round trip. It reports whether the lock is held or waited for, and how many tokens
// the block of each holder has. Package redlock compares them with those of other servers.
func (d *Driver) LookTokens(
	ctx context.Context, key driver.Key,
) (info driver.LockInfo, tokens []int, inUse bool, err error) {
	if d.isClosed() {
		return driver.LockInfo{}, nil, false, driver.ErrClosed
	}
	s := d.look(ctx, []driver.Key{key})[0]
	return s.info, s.tokens, s.inUse, s.err
}
