// The search for locks of other libraries under Diagnose. It reads keys, never writes, and is bounded.

package redislock

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// How much is looked at: a server may have millions of keys, and Diagnose must not be noticed there.
const (
	strangerPages = 5
	strangerPage  = 200 // keys
)

// stranger is a key that looks like a lock of another library. Its value is never kept: it is the secret that opens the
// lock.
type stranger struct{ library, key string }

// strangers are all that were found among the first keys of a server.
type strangers struct {
	found []stranger
	seen  int  // how many keys were looked at
	all   bool // these are all that there are
}

// marks recognize libraries by what they write. A value alone may be something else, so a finding is a guess and is
// reported as one. The order matters: the first mark that matches names the library.
var marks = []struct {
	library, kind string
	key, value    *regexp.Regexp // of a hash the value is its field
}{
	{"ShedLock", "string", regexp.MustCompile(`^job-lock:`), regexp.MustCompile(`^ADDED:`)},
	{"Redisson", "hash", nil, regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{27}:\d+$`)},
	{"Spring Integration", "string", regexp.MustCompile(`:`), regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{27}$`)},
	{"redsync", "string", nil, regexp.MustCompile(`^[0-9A-Za-z+/]{22}==$`)}, // 16 random bytes
	{"bsm/redislock", "string", nil, regexp.MustCompile(`^[0-9A-Za-z_-]{22}$`)},
}

// lookForStrangers looks for keys with a time to live that look like another library's lock. Locks of such a library do
// not exclude ours, which matters in the middle of a migration. Keys that the user may not read are passed over. It
// returns nil if SCAN is refused.
func lookForStrangers(ctx context.Context, node Node, prefix string) *strangers {
	s := &strangers{}
	cursor := "0"
	// Only a bounded number of pages is read, because a server may have millions of keys.
	for range strangerPages {
		answer, err := node.Do(ctx, "SCAN", cursor, "COUNT", fmt.Sprint(strangerPage))
		list, _ := answer.([]any)
		if err != nil || len(list) != 2 {
			return nil
		}
		keys, _ := list[1].([]any)
		s.look(ctx, node, prefix, keys)
		if cursor, _ = list[0].(string); cursor == "0" {
			s.all = true
			break
		}
	}
	// Servers return keys in any order, and a report should be the same from look to look.
	slices.SortFunc(s.found, func(a, b stranger) int {
		return cmp.Or(strings.Compare(a.library, b.library), strings.Compare(a.key, b.key))
	})
	return s
}

// look looks at the keys of one page, all at once, so that it costs the round trips of one key. It returns when all are
// read.
func (s *strangers) look(ctx context.Context, node Node, prefix string, keys []any) {
	var mu sync.Mutex // guards s
	var all sync.WaitGroup
	for _, k := range keys {
		key, _ := k.(string)
		if strings.HasPrefix(key, prefix) {
			continue // ours
		}
		s.seen++
		all.Go(func() {
			library := libraryOf(ctx, node, key)
			if library == "" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			s.found = append(s.found, stranger{library, key})
		})
	}
	all.Wait()
}

// libraryOf names the library whose lock a key looks like, or returns "". It takes two to four round trips.
func libraryOf(ctx context.Context, node Node, key string) string {
	kind, _ := node.Do(ctx, "TYPE", key)
	if left, err := node.Do(ctx, "PTTL", key); err != nil || left == int64(-1) || kind != "string" && kind != "hash" {
		return "" // every library lets its locks end by themselves
	}
	var value string
	if kind == "string" {
		answer, _ := node.Do(ctx, "GETRANGE", key, "0", "63") // a lock's is shorter
		value, _ = answer.(string)
	} else if size, _ := node.Do(ctx, "HLEN", key); size == int64(1) {
		fields, _ := node.Do(ctx, "HKEYS", key)
		if list, _ := fields.([]any); len(list) == 1 {
			value, _ = list[0].(string)
		}
	}
	for _, m := range marks {
		if m.kind == kind && (m.key == nil || m.key.MatchString(key)) && m.value.MatchString(value) {
			return m.library
		}
	}
	return ""
}

// checkStrangers: locks of other libraries are no fault. But an operator who does not know of them may rely on an
// exclusion that does not exist, so it is a warning.
func checkStrangers(n *nodeFacts) *opinion {
	s := n.strangers
	if s == nil {
		return nil
	}
	of := fmt.Sprintf("%d keys", s.seen)
	if !s.all {
		of = "the first " + of
	}
	if len(s.found) == 0 {
		return fine("none of %s looks like a lock of another library", of)
	}
	var names []string
	for _, f := range s.found[:min(3, len(s.found))] {
		names = append(names, fmt.Sprintf("%q (%s)", f.key, f.library))
	}
	return warn("if programs with interlock must exclude those that made them, see docs/migration.md",
		"%d of %s look like locks of another library, for instance %s: locks of interlock do not exclude them",
		len(s.found), of, strings.Join(names, ", "))
}
