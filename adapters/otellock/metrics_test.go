package otellock

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/metriclabels"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everything brings about each metric once, in virtual time.
func everything(t *testing.T, k *kit) {
	t.Helper()
	m := k.Mutex("a", &interlock.LockOptions{Class: "stock", Retain: time.Minute})
	l := k.lock(m)
	waits := make(chan *interlock.Lease)
	go func() { waits <- k.lock(m) }()
	synctest.Wait()
	k.want(1, "interlock.waiting", classKey.String("stock"), kindKey.String("mutex"), engineKey.String("memory"))
	k.want(1, "interlock.held", classKey.String("stock"))
	time.Sleep(15 * time.Second)
	k.unlock(l)
	l = <-waits
	k.want(0, "interlock.waiting")
	k.engine.failRenewals.Store(true)
	time.Sleep(20 * time.Second)
	k.engine.failRenewals.Store(false)
	time.Sleep(10 * time.Second)
	k.unlock(l)
	k.want(1, "interlock.retained")
	k.unlock(k.lock(k.peer().Mutex("a", nil)))
	l = k.lock(k.Mutex("lost", nil))
	if err := k.Break(t.Context(), interlock.KindMutex, "lost", l.Token()); err != nil {
		t.Fatal(err)
	}
	k.engine.failAcquires.Store(true)
	if _, err := k.TryLock(t.Context(), "undone"); !errors.Is(err, interlock.ErrUnavailable) {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	synctest.Wait()
}

func TestMetrics_CountWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, nil)
		everything(t, k)
		for _, gauge := range []string{"waiting", "held", "retained", "settling"} {
			k.want(0, "interlock."+gauge)
		}
		stock, acquired := classKey.String("stock"), resultKey.String("acquired")
		k.want(1, "interlock.acquire", stock, acquired, localKey.Bool(false))
		k.want(1, "interlock.acquire", stock, acquired, localKey.Bool(true))
		k.want(1, "interlock.acquire", classKey.String("other"), resultKey.String("unavailable"))
		k.want(3, "interlock.acquire.duration")
		k.want(3, "interlock.hold.duration")
		k.want(1, "interlock.lost")
		k.want(1, "interlock.lost", reasonKey.String("broken"))
		k.want(1, "interlock.recalled", stock)
		k.want(1, "interlock.renewals", resultKey.String("late"))
		k.want(k.value("interlock.renewals", resultKey.String("ok"))+1, "interlock.renewal.remaining")
		if k.value("interlock.renewals", resultKey.String("failed")) == 0 {
			t.Error("no renewal has failed")
		}
	})
}

// A class that is made of names is a mistake, which must not cost memory without end, nor the balance of a gauge.
func TestMetrics_HaveABound_AlsoWithAClassForEachLock(t *testing.T) {
	k := newKit(t, nil)
	o := newMetrics(k.meters.Meter("test")).observer()
	tell := func(begins bool) {
		for i := range metriclabels.MostClasses + 200 {
			e := interlock.Event{Class: fmt.Sprint(i), Kind: interlock.KindMutex, Engine: "memory"}
			if begins {
				o.Acquired(t.Context(), e)
			} else {
				o.Released(e)
			}
		}
	}
	tell(true)
	k.want(metriclabels.MostClasses+200, "interlock.held")
	k.want(200, "interlock.held", classKey.String(metriclabels.Other))
	held := k.collect()["interlock.held"].Data.(metricdata.Sum[int64])
	if len(held.DataPoints) != metriclabels.MostClasses+1 {
		t.Errorf("%d series, want %d", len(held.DataPoints), metriclabels.MostClasses+1)
	}
	tell(false)
	for _, p := range k.collect()["interlock.held"].Data.(metricdata.Sum[int64]).DataPoints {
		if p.Value != 0 {
			t.Errorf("%v is %d", p.Attributes, p.Value)
		}
	}
}

// What is exported must not change by accident: dashboards and alerts rest on it.
func TestMetrics_HaveTheNamesThatTheyAreKnownBy(t *testing.T) {
	var got strings.Builder
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, linking)
		everything(t, k)
		all := k.collect()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			m := all[name]
			kind, set := shape(m.Data)
			var keys []string
			for _, a := range set.ToSlice() {
				keys = append(keys, string(a.Key))
			}
			fmt.Fprintf(&got, "%s %s %s {%s} %s\n", name, kind, m.Unit, strings.Join(keys, ", "), m.Description)
		}
	})
	const golden = "testdata/names.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(known) {
		t.Errorf("got\n%s\nwant (go test -update accepts)\n%s", got.String(), known)
	}
}

// shape says what sort of metric it is, and returns the attributes of one of its points.
func shape(data metricdata.Aggregation) (kind string, set attribute.Set) {
	switch data := data.(type) {
	case metricdata.Sum[int64]:
		if data.IsMonotonic {
			return "counter", data.DataPoints[0].Attributes
		}
		return "up-down counter", data.DataPoints[0].Attributes
	case metricdata.Histogram[float64]:
		return "histogram", data.DataPoints[0].Attributes
	}
	return fmt.Sprintf("%T", data), attribute.Set{}
}

func TestMetrics_HaveNoMoreSeries_HoweverManyLocksThereAre(t *testing.T) {
	k := newKit(t, nil)
	points := func() (n int) {
		for _, m := range k.collect() {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				n += len(data.DataPoints)
			case metricdata.Histogram[float64]:
				n += len(data.DataPoints)
			}
		}
		return n
	}
	before := 0
	for i := range 10_000 {
		l, err := k.TryLock(t.Context(), fmt.Sprint("order:", i))
		if err != nil {
			t.Fatal(err)
		}
		k.unlock(l)
		k.spans.Reset()
		if i == 0 {
			before = points()
		}
	}
	if after := points(); after != before {
		t.Errorf("%d points after one lock, %d after 10,000", before, after)
	}
}

func TestObserver_TakesWhateverItIsTold_AlsoWithoutAnSDK(t *testing.T) {
	k := newKit(t, nil)
	for name, o := range map[string]*interlock.Observer{
		"an SDK":  New(&Options{TracerProvider: k.provider}),
		"no SDK":  New(nil),
		"no name": New(&Options{OmitNames: true}),
	} {
		e := interlock.Event{
			Name: "\xff", Class: "\xff\x00", Kind: "\xc3", Engine: "\x80", Reason: "\xff", Waited: -1, Held: -1,
			Token: 1 << 63, Err: errors.New("\xff"),
		}
		for _, tell := range []func(){
			func() { o.Waiting(t.Context(), e) }, func() { o.Acquired(t.Context(), e) },
			func() { o.Upgraded(t.Context(), e) }, func() { o.Failed(t.Context(), e) },
			func() { o.Renewed(e) }, func() { o.RenewalFailed(e) }, func() { o.Recalled(e) }, func() { o.Lost(e) },
			func() { o.Released(e) }, func() { o.Settling(e) }, func() { o.Settled(e) },
		} {
			tell()
		}
		if o.Retained == nil || o.RetentionEnded == nil {
			t.Errorf("%s: it does not hear of retention", name)
		}
	}
	for _, span := range k.spans.GetSpans() {
		for _, a := range span.Attributes {
			if s := a.Value.Emit(); strings.ToValidUTF8(s, "") != s {
				t.Errorf("%s has %q, which exporters refuse", a.Key, s)
			}
		}
	}
}
