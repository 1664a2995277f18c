package interlock

import (
	"context"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// A label for each call (LabelFrom). A call with a label of its own gets a Mutex of its own with the same key, as a
// campaign does. So requests, renewals and holds find the label where they find every other option. acquire.go
// begins with labelled.

// labelled returns the mutexes in the order of taking, each with the label of the call to which ctx belongs. It copies
// the slice only if one of them changes.
func (m *Multi) labelled(ctx context.Context) []*core.Lock {
	locks := m.order
	for i, l := range m.order {
		own := shell.Labelled(ctx, l)
		if own == l {
			continue
		}
		if &locks[0] == &m.order[0] {
			locks = append([]*core.Lock(nil), m.order...)
		}
		locks[i] = own
	}
	return locks
}
