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

func TestShow_HasTheInterfacesOfEachSetAndNoOthers(t *testing.T) {
	for set := range Set(1 << 2) {
		if got := Of(Show(Complete(bare{}), set)); got != set {
			t.Errorf("shown with the set %02b, a driver has %02b", set, got)
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
	for _, call := range []string{"renew", "requeue", "convert", "break", "locks"} {
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
	if inner.calls != 6 {
		t.Errorf("%d of 6 calls came through", inner.calls)
	}
}
