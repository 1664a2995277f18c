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

// How much is looked at: a server may have millions of keys, and doctor must not be felt.
const (
	strangerPages = 5
	strangerPage  = 200 // keys
)

// stranger is a key that looks like a lock of another library.
type stranger struct{ library, key string }

// strangers are all that were found among some keys of a server.
type strangers struct {
	found []stranger
	seen  int  // how many keys were looked at
	all   bool // these are all that there are
}

// marks tell libraries by what they write. A value alone may be something else, so what is found is a guess, and said
// to be one.
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

// lookForStrangers looks for keys with a time to live that have the form of another library's lock. Locks of such a
// library do not exclude ours, which has surprised people in the middle of a migration. What the user may not read is
// passed over.
func lookForStrangers(ctx context.Context, node Node, prefix string) *strangers {
	s := &strangers{}
	cursor := "0"
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
	slices.SortFunc(s.found, func(a, b stranger) int {
		return cmp.Or(strings.Compare(a.library, b.library), strings.Compare(a.key, b.key))
	})
	return s
}

// look looks at the keys of one page, all at once, which costs the round trips of one.
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

// libraryOf says whose lock a key looks like, or nothing.
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

// checkStrangers: that there are locks of other libraries is no fault, but who does not know of it may rely on what
// is not there.
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
