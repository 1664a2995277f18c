package redislock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Locks finds locks with SCAN on each primary, so it costs time in proportion to all keys of the deployment, in steps
// that do not block the server, and reads each lock that it finds by itself. What another program has stored under a
// lock's key is marked (driver.LockInfo.Unreadable), and never shown.
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

// scan yields the locks on one node. It reports whether to go on.
func (d *Driver) scan(ctx context.Context, node Node, prefix string, seen map[string]bool,
	yield func(driver.LockInfo, error) bool,
) bool {
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
			if key, is := d.names.lockOf(name); is && strings.HasPrefix(key.Name, prefix) && !seen[name] {
				seen[name] = true
				keys = append(keys, key)
			}
		}
		for i, found := range d.look(ctx, keys) {
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

// scanned takes an answer to SCAN apart.
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

// globQuote makes a pattern of a literal string.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// sight is what look found of one lock.
type sight struct {
	info   driver.LockInfo
	tokens []int // how many each holder has
	inUse  bool
	err    error
}

// listed is the sight in a list, which a key that cannot be read does not end.
func (s sight) listed(key driver.Key) sight {
	switch {
	case s.err == nil, !errors.Is(s.err, errForeign) && !errors.Is(s.err, driver.ErrConflict) && !isOfOneKey(s.err):
		return s
	}
	why := s.err.Error()
	if errors.Is(s.err, errForeign) {
		why = errForeign.Error()
	}
	return sight{info: driver.LockInfo{Kind: key.Kind, Name: key.Name, Unreadable: why}, inUse: true}
}

// isOfOneKey reports whether the user may not read this key, which says nothing of others.
func isOfOneKey(err error) bool {
	text := err.Error()
	return driver.Refusal(err) != nil && strings.Contains(text, "NOPERM") && strings.Contains(text, " key")
}

// look reads locks, each by itself.
func (d *Driver) look(ctx context.Context, keys []driver.Key) []sight {
	sights := make([]sight, len(keys))
	calls := make([]Call, len(keys))
	for i, key := range keys {
		name, slot := d.names.lock(key)
		calls[i] = Call{Script: lookScript, Slot: slot, Keys: []string{name}}
	}
	d.conn.Batch(ctx, calls, func(i int, r Reply) {
		if r.Err != nil {
			sights[i].err = d.unavailable(ctx, "look at", keys[i], r.Err)
			return
		}
		sights[i] = d.seen(keys[i], r.Text)
	})
	return sights
}

// LookTokens reads one lock, in one round trip. It reports whether the lock is held or waited for, and how many tokens
// the block of each holder has.
func (d *Driver) LookTokens(
	ctx context.Context, key driver.Key,
) (info driver.LockInfo, tokens []int, inUse bool, err error) {
	if d.isClosed() {
		return driver.LockInfo{}, nil, false, driver.ErrClosed
	}
	s := d.look(ctx, []driver.Key{key})[0]
	return s.info, s.tokens, s.inUse, s.err
}

// stored is a lock as look.lua tells it.
type stored struct {
	Version string          `json:"v"`
	Now     string          `json:"now"`
	Lasts   int64           `json:"lasts"`
	Thin    string          `json:"thin"`
	Limit   string          `json:"limit"`
	Holds   json.RawMessage `json:"holds"`   // Lua cannot tell an empty list from an empty object
	Waiters json.RawMessage `json:"waiters"` // likewise
}

// seen reads the answer of look.
func (d *Driver) seen(key driver.Key, text string) sight {
	s := seen(key, text)
	if errors.Is(s.err, errForeign) {
		s.err = d.sorted("look at", key, s.err, false)
	}
	return s
}

// seen is Driver.seen without the name of the key.
func seen(key driver.Key, text string) sight {
	if text == "" {
		return sight{}
	}
	var l stored
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return sight{err: fmt.Errorf("redis: %s %q cannot be read: %w", key.Kind, key.Name, err)}
	}
	if l.Version == "" || strings.HasPrefix(l.Thin, "1 ") && strings.Count(l.Thin, " ") < thinWords-1 {
		return sight{err: errForeign}
	}
	if l.Version != plainFormat && (l.Version != format || l.Thin != "") {
		return sight{err: fmt.Errorf("redis: %s %q: %w", key.Kind, key.Name, errNewer(l.Version))}
	}
	now := micros(l.Now)
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
	for _, f := range records(l.Holds) {
		if h := f.holder(now); h.Until.After(time.UnixMicro(now)) {
			info.Holders = append(info.Holders, h)
			tokens = append(tokens, int(max(f.number(19), 1)))
		}
	}
	for _, f := range records(l.Waiters) {
		if f.number(14)*1000 > now { // its heartbeat counts
			w := f.waiter()
			w.Position = len(info.Waiters) + 1
			info.Waiters = append(info.Waiters, w)
		}
	}
	return sight{info: info, tokens: tokens, inUse: len(info.Holders)+len(info.Waiters) > 0}
}

// thinWords is how many words a lock in its short form has. The last may have spaces.
const thinWords = 12

// thinHolder reads 1 ID TOKEN SINCE PASS WAY CLAIM TTL LEASE TOKENS CHANNEL META.
func thinHolder(thin string, now, lasts int64) driver.Holder {
	f := strings.SplitN(thin, " ", thinWords)
	if len(f) < thinWords {
		return driver.Holder{}
	}
	m := parseMeta(f[11])
	token, _ := strconv.ParseUint(f[2], 10, 64)
	return driver.Holder{
		Owner: m.Owner, Client: m.Client, Label: m.Label, Token: token, Weight: 1,
		Since: time.UnixMicro(micros(f[3])), Until: time.UnixMicro(now + lasts*1000), Retained: m.Retention == retained,
	}
}

// record is a waiter or a hold as lock.lua stores it; fields count from 1.
type record []any

func records(raw json.RawMessage) []record {
	var list []record
	_ = json.Unmarshal(raw, &list) // an empty list looks like an object
	return list
}

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

// holder reads a hold. One whose lease has ended is in the way until its delay has, whether a
// script has noticed or not.
func (f record) holder(now int64) driver.Holder {
	m := parseMeta(f.text(8))
	until, state := time.UnixMilli(f.number(21)), f.number(23)
	resting := state == 2 || state == 3 // see wire.md
	if state == 0 && !until.After(time.UnixMicro(now)) {
		until, resting = until.Add(time.Duration(f.number(16))*time.Millisecond), true
	}
	return driver.Holder{
		Owner: m.Owner, Client: m.Client, Label: m.Label, Token: uint64(f.number(18)), Weight: int(f.number(4)),
		Shared: f.text(3) != "x", Since: time.UnixMicro(f.number(24)), Until: until,
		Named: f.text(2) != "", Resting: resting, Retained: m.Retention == retained && !resting,
	}
}

func (f record) waiter() driver.Waiter {
	m := parseMeta(f.text(8))
	return driver.Waiter{
		Owner: m.Owner, Client: m.Client, Label: m.Label, Weight: int(f.number(4)),
		Shared: f.text(3) != "x", Since: time.UnixMicro(f.number(9)), Named: f.text(2) != "",
	}
}
