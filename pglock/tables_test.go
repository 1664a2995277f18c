package pglock

import (
	"sync"
	"testing"
)

// TestFirstStart_OfManyClientsAtOnce: the server tells those that make a table at once of each other by errors about
// its own tables, of which it has several.
func TestFirstStart_OfManyClientsAtOnce(t *testing.T) {
	n := sharedServer(t)
	config := configOf(t, n.Addr())
	for range 10 {
		table := ownTable()
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				d, err := New(t.Context(), config, &Options{Table: table})
				if err != nil {
					t.Error(err)
					return
				}
				_ = d.Close()
			})
		}
		all.Wait()
	}
}
