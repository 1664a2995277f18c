package faulty_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/broken"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// bare has no optional interface; requeuer has the one that a wrapper must not have in vain.
type bare struct{ driver.Driver }

type requeuer struct {
	driver.Driver
	driver.Requeuer
}

func TestWrap_HasRequeueIfTheInnerDriverHas(t *testing.T) {
	for _, inner := range []driver.Driver{bare{}, requeuer{}, memlock.New(nil)} {
		d, _ := faulty.Wrap(inner, 1)
		_, want := inner.(driver.Requeuer)
		if _, got := d.(driver.Requeuer); got != want {
			t.Errorf("%T has Requeue: %v; wrapped: %v", inner, want, got)
		}
	}
}

func TestWrap_IsNotLocalAndResumesIfTheInnerDriverDoes(t *testing.T) {
	for _, inner := range []driver.Driver{broken.NewStore(broken.None).Client(), memlock.New(nil)} {
		d, _ := faulty.Wrap(inner, 1)
		if got, want := d.Traits(), inner.Traits(); got.Local || got.Resumes != want.Resumes {
			t.Errorf("%s wrapped has the traits %+v, want those of the inner driver without Local", want.Engine, got)
		}
	}
}

func TestWrap_SaysUnsupportedForWhatTheInnerDriverDoesNotHave(t *testing.T) {
	d, _ := faulty.Wrap(bare{}, 1)
	if err := d.(driver.Breaker).Break(t.Context(), key, 1); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("break says %v, want ErrUnsupported", err)
	}
}
