package interlock

import (
	"cmp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// storeOf names the store that a URL leads to: without user, password and whatever says how to talk to it.
func storeOf(raw string) string {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return "" // Open reports it
	}
	hosts := slices.Clone(u.Hosts)
	slices.Sort(hosts)
	parts := []string{u.Scheme, strings.Join(hosts, ","), u.Path}
	for _, key := range []string{"db", "prefix", "table"} { // what divides one server into several stores
		parts = append(parts, u.Query.Get(key))
	}
	return strings.Join(parts, "|")
}

// compare orders mutexes in the same way in every process: by name, and where several stores have a mutex of the same
// name, by the store. So what a store is called matters for those alone.
func compare(a, b *Mutex) int {
	return cmp.Or(
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.c.opts.Store, b.c.opts.Store),
	)
}
