package interlock

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// batches is an engine that records the size of each batch of renewals.
type batches struct {
	instantly
	mu    sync.Mutex
	sizes []int
}

func (d *batches) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	d.mu.Lock()
	d.sizes = append(d.sizes, len(batch))
	d.mu.Unlock()
	d.instantly.Renew(ctx, batch, done)
}

// Very many grants that are due at the same instant must not be one batch, because each would wait for the last answer.
func TestRenewals_OfVeryManyGrants_TravelInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const locks = 2*core.MostTogether + 1
		d := new(batches)
		c := mustNew(t, d, nil)
		defer c.Close()
		for i := range locks {
			mustLock(t, t.Context(), c, strconv.Itoa(i))
		}
		time.Sleep(c.in().Config.Renewal + 2*time.Second)
		synctest.Wait()
		d.mu.Lock()
		defer d.mu.Unlock()
		renewed := 0
		for _, n := range d.sizes {
			if renewed += n; n > core.MostTogether {
				t.Errorf("%d renewals came together, want at most %d", n, core.MostTogether)
			}
		}
		if renewed != locks {
			t.Errorf("%d renewals of %d grants", renewed, locks)
		}
	})
}
