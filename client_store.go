package interlock

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// The name of the store, and with it the one order in which every process takes several locks (multi.go).

// storeOf names the store that a URL leads to: without user and password, and without what only says how to talk to it.
// Two processes with equivalent URLs must get the same name.
func storeOf(raw string) string {
	u, err := driver.ParseURL(raw)
	if err != nil {
		return "" // Open reports it
	}
	hosts := slices.Clone(u.Hosts)
	slices.Sort(hosts)
	parts := []string{u.Scheme, strings.Join(hosts, ","), u.Path}
	// These keys divide one server into several stores.
	for _, key := range []string{"db", "prefix", "table"} {
		parts = append(parts, u.Query.Get(key))
	}
	return strings.Join(parts, "|")
}
