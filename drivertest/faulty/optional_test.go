package faulty_test

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/drivertest/internal/broken"
	"github.com/interlock-go/interlock/memlock"
)

// bare has no optional interface. The others have those that a wrapper must have only if the driver in it has them.
type bare struct{ driver.Driver }

type requeuer struct {
	driver.Driver
	driver.Requeuer
}

type converter struct {
	driver.Driver
	driver.Converter
}

func TestWrap_HasRequeueAndConvertIfTheInnerDriverHas(t *testing.T) {
	for _, inner := range []driver.Driver{bare{}, requeuer{}, converter{}, memlock.New(nil)} {
		d, _ := faulty.Wrap(inner, 1)
		same[driver.Requeuer](t, inner, d)
		same[driver.Converter](t, inner, d)
	}
}

func same[T any](t *testing.T, inner, wrapped driver.Driver) {
	t.Helper()
	_, want := inner.(T)
	if _, got := wrapped.(T); got != want {
		t.Errorf("%T has %T: %v; wrapped: %v", inner, (*T)(nil), want, got)
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

// heeding is a driver that tells of reconnections.
type heeding struct {
	driver.Driver
	heeds []func()
}

func (h *heeding) OnReconnect(f func()) (stop func()) {
	h.heeds = append(h.heeds, f)
	return func() { h.heeds = nil }
}

func TestWrap_PassesReconnectionsOn(t *testing.T) {
	inner := &heeding{Driver: bare{}}
	d, _ := faulty.Wrap(inner, 1)
	told := false
	stop := d.(driver.Reconnector).OnReconnect(func() { told = true })
	for _, f := range inner.heeds {
		f()
	}
	if stop(); !told || len(inner.heeds) > 0 {
		t.Errorf("told: %v; heeds after stop: %d", told, len(inner.heeds))
	}
	without, _ := faulty.Wrap(bare{}, 1)
	without.(driver.Reconnector).OnReconnect(func() { t.Error("told of nothing") })()
}
