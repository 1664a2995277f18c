package optional

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// bare has no optional interface.
type bare struct{ driver.Driver }

func (bare) Traits() driver.Traits { return driver.Traits{} }

func TestShow_HasTheInterfacesOfEachSetAndNoOthers(t *testing.T) {
	for set := range Set(1 << 3) {
		if got := Of(Show(Complete(bare{}), set)); got != set {
			t.Errorf("shown with the set %03b, a driver has %03b", set, got)
		}
	}
}

func TestComplete_SaysUnsupportedForWhatIsMissing(t *testing.T) {
	d, key := Complete(bare{}), driver.Key{Kind: driver.KindMutex, Name: "x"}
	said := make(map[string]error)
	d.Renew(t.Context(), make([]driver.Renewal, 1), func(_ int, err error) { said["renew"] = err })
	_, said["requeue"] = d.Requeue(t.Context(), &driver.Release{}, &driver.Request{})
	_, said["convert"] = d.Convert(t.Context(), "", &driver.Request{})
	said["break"] = d.Break(t.Context(), key, 1)
	for _, err := range d.Locks(t.Context(), "") {
		said["locks"] = err
	}
	_, said["look"] = d.Look(t.Context(), key)
	said["watch"] = d.Watch(t.Context(), key, func() {})
	_, said["set latch"] = d.SetLatch(t.Context(), &driver.LatchCall{})
	_, said["count down"] = d.CountDown(t.Context(), &driver.LatchCall{})
	_, said["latch count"] = d.LatchCount(t.Context(), key)
	_, said["cond wait"] = d.CondWait(t.Context(), nil, nil, nil)
	said["cond signal"] = d.CondSignal(t.Context(), nil)
	_, said["acquire all"] = d.AcquireAll(t.Context(), nil)
	if len(said) != 13 {
		t.Errorf("%d calls were made", len(said))
	}
	for call := range said {
		if !errors.Is(said[call], driver.ErrUnsupported) {
			t.Errorf("%s says %v, want ErrUnsupported", call, said[call])
		}
	}
	if found := d.Diagnose(t.Context()); len(found) > 0 {
		t.Errorf("diagnose found %v", found)
	}
}

// counting counts the calls of optional methods.
type counting struct {
	driver.Driver
	calls int
}

func (c *counting) Renew(context.Context, []driver.Renewal, func(int, error)) { c.calls++ }

func (c *counting) Requeue(context.Context, *driver.Release, *driver.Request) (g driver.Grant, err error) {
	c.calls++
	return g, nil
}

func (c *counting) Convert(context.Context, string, *driver.Request) (g driver.Grant, err error) {
	c.calls++
	return g, nil
}

func (c *counting) Locks(context.Context, string) iter.Seq2[driver.LockInfo, error] {
	c.calls++
	return func(func(driver.LockInfo, error) bool) {}
}

func (c *counting) Break(context.Context, driver.Key, uint64) error {
	c.calls++
	return nil
}

func (c *counting) Look(context.Context, driver.Key) (info driver.LockInfo, err error) {
	c.calls++
	return info, nil
}

func (c *counting) Watch(context.Context, driver.Key, func()) error {
	c.calls++
	return nil
}

func (c *counting) SetLatch(context.Context, *driver.LatchCall) (bool, error) {
	c.calls++
	return true, nil
}

func (c *counting) CountDown(context.Context, *driver.LatchCall) (int64, error) {
	c.calls++
	return 0, nil
}

func (c *counting) LatchCount(context.Context, driver.Key) (int64, error) {
	c.calls++
	return 0, nil
}

func (c *counting) CondWait(context.Context, *driver.Release, *driver.Request, func()) (g driver.Grant, err error) {
	c.calls++
	return g, nil
}

func (c *counting) CondSignal(context.Context, *driver.Signal) error {
	c.calls++
	return nil
}

func (c *counting) AcquireAll(context.Context, []*driver.Request) (gs []driver.Grant, err error) {
	c.calls++
	return gs, nil
}

func (c *counting) Diagnose(context.Context) []driver.Finding {
	c.calls++
	return nil
}

func TestComplete_AsksTheInnerDriverForWhatItHas(t *testing.T) {
	inner := &counting{}
	d := Complete(inner)
	d.Renew(t.Context(), nil, nil)
	_, _ = d.Requeue(t.Context(), nil, nil)
	_, _ = d.Convert(t.Context(), "", nil)
	for range d.Locks(t.Context(), "") {
		t.Error("there is nothing to list")
	}
	_ = d.Break(t.Context(), driver.Key{}, 0)
	_ = d.Diagnose(t.Context())
	_, _ = d.Look(t.Context(), driver.Key{})
	_ = d.Watch(t.Context(), driver.Key{}, nil)
	_, _ = d.SetLatch(t.Context(), nil)
	_, _ = d.CountDown(t.Context(), nil)
	_, _ = d.LatchCount(t.Context(), driver.Key{})
	_, _ = d.CondWait(t.Context(), nil, nil, nil)
	_ = d.CondSignal(t.Context(), nil)
	_, _ = d.AcquireAll(t.Context(), nil)
	if inner.calls != 14 {
		t.Errorf("%d of 14 calls came through", inner.calls)
	}
}
