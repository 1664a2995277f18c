// What operators see: the list of the locks, and how each looks in the store.

package redislock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

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

// Look, the reading of one lock.

var _ driver.Looker = (*Driver)(nil)

// Look reads one lock, in one round trip; one with very many holders or waiters in one for each 200 of them, so what it
// returns of such a lock is no snapshot. It changes nothing: a hold that has ended but was not cleared yet is not
// shown. With Options.Replicas it waits for the replicas if the lock is an election's, and is driver.ErrUnavailable if
// too few have what it has read. For that it writes what is there already, so the user needs the right to write, and
// a server without memory cannot confirm that nobody leads.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return none, fmt.Errorf("redis: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	if d.isClosed() {
		return none, driver.ErrClosed
	}
	name, slot := d.names.lock(key)
	call := &Call{Script: lookScript, Slot: slot, Keys: []string{name}}
	// Who leads is told to those who act on it, so it must not be undone by a failover.
	if d.opts.Replicas > 0 && key.Kind == driver.KindElection {
		call.Script, call.Keys = touchedLookScript, []string{name, d.names.floor(slot)}
		d.waitForReplicas(call)
	}
	var p pages
	for {
		answer := d.acked(call, d.callTwice(ctx, call))
		if answer.Err != nil {
			return none, d.unavailable(ctx, "look at", key, answer.Err)
		}
		if p.add(answer.Text); p.next == nil {
			break
		}
		call.Args = p.next
	}
	// A hold that has ended may not have been cleared yet. Then the lock counts as free.
	if found := d.seen(key, &p); found.err != nil || found.inUse {
		return found.info, found.err
	}
	return none, nil
}

// What a lock looks like in the store. scripts/look.lua answers in JSON.

// stored is a lock as look.lua tells it. It has either a thin text or holds and waiters.
type stored struct {
	Version string          `json:"v"`
	Now     string          `json:"now"`   // the server's clock in microseconds
	Lasts   int64           `json:"lasts"` // the rest of the key's time to live, in milliseconds
	Thin    string          `json:"thin"`  // the lock's string, if it is thin
	Limit   string          `json:"limit"`
	Holds   json.RawMessage `json:"holds"`   // Lua cannot tell an empty list from an empty object
	Waiters json.RawMessage `json:"waiters"` // likewise
	More    *string         `json:"more"`    // the arguments of the next page, in words; nil if this is the last
}

// pages are the pages of one lock, as look.lua tells them.
type pages struct {
	stored
	holds, waiters []record
	ids            map[string]int // where in holds that ID is; nil if there is but one page
	next           []string       // the arguments of the next page; nil if the last is there
	text           string         // the first page
	err            error
}

// add takes in a page. What comes first counts of the lock itself, and what comes last of a hold.
func (p *pages) add(text string) {
	var l stored
	if text != "" {
		p.err = json.Unmarshal([]byte(text), &l)
	}
	first := p.next == nil
	if first {
		p.stored, p.text = l, text
	}
	p.next = nil
	if l.More != nil {
		p.next = strings.Split(*l.More, " ")
	}
	if p.ids == nil && (p.next != nil || !first) {
		p.ids = make(map[string]int)
		for i, h := range p.holds {
			p.ids[h.text(1)] = i
		}
	}
	for _, h := range records(l.Holds) {
		if at, again := p.ids[h.text(1)]; again {
			p.holds[at] = h
			continue
		}
		if p.ids != nil {
			p.ids[h.text(1)] = len(p.holds)
		}
		p.holds = append(p.holds, h)
	}
	p.waiters = append(p.waiters, records(l.Waiters)...)
}

// inOrder returns the holds in the order of their grants, and those of one instant as they had asked. The crowd comes
// in the order in which its leases end.
func (p *pages) inOrder() []record {
	if p.Version == format {
		slices.SortStableFunc(p.holds, func(a, b record) int {
			return cmp.Or(cmp.Compare(a.number(24), b.number(24)), cmp.Compare(a.number(9), b.number(9)))
		})
	}
	return p.holds
}

// seen reads the answers of look for key. It names the key in the error of a foreign value.
func (d *Driver) seen(key driver.Key, p *pages) sight {
	s := seen(key, p)
	if errors.Is(s.err, errForeign) {
		s.err = d.sorted("look at", key, s.err, false)
	}
	return s
}

// seen is Driver.seen without the name of the key, which needs the prefix.
func seen(key driver.Key, p *pages) sight {
	if p.text == "" {
		return sight{}
	}
	l := p.stored
	if p.err != nil {
		return sight{err: fmt.Errorf("redis: %s %q cannot be read: %w", key.Kind, key.Name, p.err)}
	}
	// A string that begins like ours but has too few words, or a key of another type, is another program's.
	if l.Version == "" || strings.HasPrefix(l.Thin, "1 ") && strings.Count(l.Thin, " ") < thinWords-1 {
		return sight{err: errForeign}
	}
	if l.Version != plainFormat && (l.Version != format || l.Thin != "") {
		return sight{err: fmt.Errorf("redis: %s %q: %w", key.Kind, key.Name, errNewer(l.Version))}
	}
	now := wholeNumber(l.Now)
	info := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	info.Limit, _ = strconv.Atoi(l.Limit)
	if key.Kind == driver.KindMutex || key.Kind == driver.KindElection {
		info.Limit = 1
	}
	if l.Thin != "" {
		info.Holders = []driver.Holder{thinHolder(l.Thin, now, l.Lasts)}
		f := strings.SplitN(l.Thin, " ", 11)
		tokens, _ := strconv.Atoi(f[min(9, len(f)-1)])
		return sight{info: info, tokens: []int{max(tokens, 1)}, inUse: true}
	}
	var tokens []int
	for _, f := range p.inOrder() {
		if h := f.holder(now); h.Until.After(time.UnixMicro(now)) {
			info.Holders = append(info.Holders, h)
			tokens = append(tokens, int(max(f.number(19), 1)))
		}
	}
	// Waiters whose place has expired are not cleared until the next change of the lock, so they are left out here.
	for _, f := range p.waiters {
		if f.number(14)*1000 > now { // its heartbeat counts
			w := f.waiter()
			w.Position = len(info.Waiters) + 1
			info.Waiters = append(info.Waiters, w)
		}
	}
	return sight{info: info, tokens: tokens, inUse: len(info.Holders)+len(info.Waiters) > 0}
}

// thinWords is the number of words of a thin lock. The last may have spaces.
const thinWords = 12

// noTimeToLive is what PTTL says of a key without one.
const noTimeToLive = -1

// thinHolder reads 1 ID TOKEN SINCE PASS WAY CLAIM TTL LEASE TOKENS CHANNEL META. The key's time to live is the lease.
func thinHolder(thin string, now, lasts int64) driver.Holder {
	f := strings.SplitN(thin, " ", thinWords)
	if len(f) < thinWords {
		return driver.Holder{}
	}
	m := parseMeta(f[11])
	token, _ := strconv.ParseUint(f[2], 10, 64)
	// A key whose time to live was removed lasts for its lease from when the next request finds it: see lasting of
	// text.lua.
	if lasts == noTimeToLive {
		lasts = wholeNumber(f[8])
	}
	return driver.Holder{
		Owner: m.Owner, Client: m.Client, Label: m.Label, Token: token, Weight: 1,
		Since: time.UnixMicro(wholeNumber(f[3])), Until: time.UnixMicro(now + lasts*1000),
		Retained: m.Retention == retained,
	}
}

// record is a waiter or a hold as lock.lua stores it: a list whose fields count from 1, as in wire.md.
type record []any

// records reads a list of them. Lua writes an empty list as an empty object, which is an error here and leaves the list
// empty.
func records(raw json.RawMessage) []record {
	var list []record
	_ = json.Unmarshal(raw, &list) // an empty list looks like an object
	return list
}

// text and number read a field, whichever of both types Lua has made of it.
func (f record) text(n int) string {
	if n > len(f) {
		return ""
	}
	switch v := f[n-1].(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (f record) number(n int) int64 {
	v, _ := strconv.ParseFloat(f.text(n), 64)
	return int64(v)
}

// holder reads a hold. If the lease of a hold has ended, it is in the way until its delay has ended too, whether a
// script has noticed that or not.
func (f record) holder(now int64) driver.Holder {
	m := parseMeta(f.text(8))
	until, state := time.UnixMilli(f.number(21)), f.number(23)
	cooldown := state == 2 || state == 3 // see wire.md
	if state == 0 && !until.After(time.UnixMicro(now)) {
		until, cooldown = until.Add(time.Duration(f.number(16))*time.Millisecond), true
	}
	return driver.Holder{
		Owner: m.Owner, Client: m.Client, Label: m.Label, Token: uint64(f.number(18)), Weight: int(f.number(4)),
		Shared: f.text(3) != "x", Since: time.UnixMicro(f.number(24)), Until: until,
		Named: f.text(2) != "", Cooldown: cooldown, Retained: m.Retention == retained && !cooldown,
	}
}

// waiter reads a waiter. The caller sets its position.
func (f record) waiter() driver.Waiter {
	m := parseMeta(f.text(8))
	return driver.Waiter{
		Owner: m.Owner, Client: m.Client, Label: m.Label, Weight: int(f.number(4)),
		Shared: f.text(3) != "x", Since: time.UnixMicro(f.number(9)), Named: f.text(2) != "",
	}
}
