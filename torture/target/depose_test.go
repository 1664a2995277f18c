package target

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// A leader that the holder does not come to is not deposed: nobody is cut off, and the fault counts as not done.
func TestAlone_WithoutAHolderThatComes_DoesNothing(t *testing.T) {
	holder := new(servers.Member)
	i := &Instance{ // without a network, which would have to be split
		Clients: []*servers.Member{holder, new(servers.Member)},
		Holder:  func() (*servers.Member, time.Time) { return holder, time.Now() },
		Steer:   func(*servers.Member, string) (func(), error) { return nil, ErrNothing },
	}
	heal, err := i.alone(t.Context(), servers.RedisServer(t, nil).Server, nil)
	if !errors.Is(err, ErrNothing) {
		t.Errorf("got %v", err)
	}
	if err := heal(); err != nil {
		t.Error(err)
	}
}
