package enginekit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCloseWithin_WaitsForTheFarewell_AndNotLongerThanItsContext(t *testing.T) {
	for name, c := range map[string]struct{ farewell, patience, want time.Duration }{
		"a server that answers": {time.Millisecond, time.Second, time.Millisecond},
		"a server that hangs":   {time.Second, time.Millisecond, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				begin := time.Now()
				CloseWithin(ctx, func() error {
					time.Sleep(c.farewell) // virtual
					return errors.New("it matters to nobody")
				})
				if took := time.Since(begin); took != c.want {
					t.Errorf("it took %v, want %v", took, c.want)
				}
				time.Sleep(c.farewell) // virtual: until nothing goes on any more
			})
		})
	}
}
