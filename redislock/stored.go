// What a lock looks like in the store, for operators. inspect.go and look.go ask; scripts/look.lua answers in JSON.

package redislock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

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
