package locktest

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock"
)

// News is what an Observer is told: each wait that the engine has queued, renewals, and losses.
type News struct {
	Queued  chan string // names; has room for all that a test does
	Renewed chan string // names; what nobody reads is forgotten when it is full
	Lost    chan *interlock.LostError
}

// NewNews returns news of nothing yet.
func NewNews() *News {
	return &News{make(chan string, 4096), make(chan string, 1<<16), make(chan *interlock.LostError, 4096)}
}

// Observer is for the options of the clients whose news they are.
func (n *News) Observer() *interlock.Observer {
	return &interlock.Observer{
		Waiting: func(_ context.Context, e interlock.Event) { n.Queued <- e.Name },
		Renewed: func(e interlock.Event) {
			select {
			case n.Renewed <- e.Name:
			default: // nobody counts that many
			}
		},
		Lost: func(e interlock.Event) {
			var lost *interlock.LostError
			if errors.As(e.Err, &lost) {
				n.Lost <- lost
			}
		},
	}
}
