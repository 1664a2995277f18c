package promlock

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/metriclabels"
	"github.com/interlock-go/interlock/memlock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// everything brings about each metric once, in virtual time.
func everything(t *testing.T, m *Metrics) {
	t.Helper()
	d := newEngine(t)
	c, other := client(t, d, m.Observer(), 0), client(t, d.Peer(), nil, 0)
	mutex := c.Mutex("a", &interlock.LockOptions{Class: "stock", Retain: time.Minute})
	l := must(t)(mutex.Lock(t.Context()))
	waits := make(chan *interlock.Lease)
	go func() { waits <- must(t)(mutex.Lock(t.Context())) }()
	synctest.Wait()
	want(t, m, 1, "waiting", "class=stock", "kind=mutex", "engine=memory")
	want(t, m, 1, "held", "class=stock", "kind=mutex", "engine=memory")
	time.Sleep(15 * time.Second)
	unlock(t, l)
	l = <-waits
	want(t, m, 0, "waiting")
	d.failRenewals.Store(true)
	time.Sleep(20 * time.Second)
	d.failRenewals.Store(false)
	time.Sleep(10 * time.Second)
	unlock(t, l)
	want(t, m, 1, "retained")
	unlock(t, must(t)(other.Lock(t.Context(), "a")))
	l = must(t)(c.Lock(t.Context(), "lost"))
	if err := c.Break(t.Context(), interlock.KindMutex, "lost", l.Token()); err != nil {
		t.Fatal(err)
	}
	d.failAcquires.Store(true)
	d.failReleases.Store(true)
	if _, err := c.TryLock(t.Context(), "undone"); !errors.Is(err, interlock.ErrUnavailable) {
		t.Fatal(err)
	}
	synctest.Wait()
	want(t, m, 1, "settling", "class=other")
	d.failReleases.Store(false)
	time.Sleep(time.Second)
	synctest.Wait()
}

func TestMetrics_CountWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(nil)
		everything(t, m)
		gaugesAreZero(t, m)
		want(t, m, 1, "acquire_total", "class=stock", "result=acquired", "local=false")
		want(t, m, 1, "acquire_total", "class=stock", "result=acquired", "local=true")
		want(t, m, 1, "acquire_total", "class=other", "result=unavailable")
		want(t, m, 3, "acquire_duration_seconds")
		want(t, m, 3, "hold_duration_seconds")
		want(t, m, 1, "lost_total")
		want(t, m, 1, "lost_total", "class=other", "reason=broken")
		want(t, m, 1, "recalled_total", "class=stock")
		want(t, m, 1, "renewals_total", "result=late")
		renewed := value(t, m, "renewals_total", "result=ok") + 1
		want(t, m, renewed, "renewal_remaining_seconds")
		if value(t, m, "renewals_total", "result=failed") == 0 || renewed < 2 {
			t.Errorf("%v renewals, and none has failed", renewed)
		}
	})
}

// What a scrape finds must not change by accident: dashboards and alerts rest on it.
func TestMetrics_HaveTheNamesThatTheyAreKnownBy(t *testing.T) {
	var got strings.Builder
	synctest.Test(t, func(t *testing.T) {
		m := New(nil)
		everything(t, m)
		families := gather(t, m)
		for _, name := range slices.Sorted(maps.Keys(families)) {
			f := families[name]
			var labels []string
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels = append(labels, l.GetName())
			}
			fmt.Fprintf(&got, "%s %s {%s} %s\n",
				name, strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp())
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

// count is how many series a scrape finds.
func count(t *testing.T, m *Metrics) (n int) {
	t.Helper()
	for _, f := range gather(t, m) {
		n += len(f.GetMetric())
	}
	return n
}

func TestMetrics_HaveNoMoreSeries_HoweverManyLocksThereAre(t *testing.T) {
	m := New(nil)
	d := memlock.New(nil)
	defer d.Close()
	c := client(t, d, m.Observer(), 0)
	before, locks := 0, 20_000
	for i := range locks {
		unlock(t, must(t)(c.TryLock(t.Context(), fmt.Sprint("order:", i))))
		if i == 0 {
			before = count(t, m)
		}
	}
	if after := count(t, m); after != before {
		t.Errorf("%d series after one lock, %d after %d", before, after, locks)
	}
	want(t, m, float64(locks), "acquire_total", "class=other")
}

// A class that is made of names is a mistake, which must not cost memory without end, nor the balance of a gauge.
func TestMetrics_HaveABound_AlsoWithAClassForEachLock(t *testing.T) {
	m := New(nil)
	o := m.Observer()
	tell := func(begins bool) {
		for i := range metriclabels.MostClasses + 1000 {
			e := interlock.Event{Class: fmt.Sprint(i), Kind: interlock.KindMutex, Engine: "memory"}
			if begins {
				o.Acquired(t.Context(), e)
			} else {
				o.Released(e)
			}
		}
	}
	tell(true)
	want(t, m, metriclabels.MostClasses+1000, "held")
	tell(false)
	gaugesAreZero(t, m)
	if n := len(m.series.by); n != metriclabels.MostClasses+1 {
		t.Errorf("%d combinations of labels, want %d", n, metriclabels.MostClasses+1)
	}
	for _, g := range gather(t, m)["interlock_held"].GetMetric() {
		if v := g.GetGauge().GetValue(); v != 0 {
			t.Errorf("%v is %v", g.GetLabel(), v)
		}
	}
}

func TestGauges_ReturnToZero(t *testing.T) {
	buggy := func(context.Context, interlock.Event) { panic("a bug") }
	bug := func(interlock.Event) { panic("a bug") }
	observers := map[string]*interlock.Observer{
		"nobody else": {},
		"one that panics": {
			Waiting: buggy, Acquired: buggy, Failed: buggy, Lost: bug, Released: bug, Renewed: bug, RenewalFailed: bug,
			Retained: bug, RetentionEnded: bug, Recalled: bug, Settling: bug, Settled: bug,
		},
	}
	for name, beside := range observers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(nil)
				d := newEngine(t)
				c := client(t, d, interlock.JoinObservers(beside, m.Observer()), time.Second)
				holds := client(t, d.Peer(), nil, 0)
				l := must(t)(holds.Lock(t.Context(), "held"))
				contained(func() {
					short, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, _ = c.Lock(short, "held")
				})
				unlock(t, l)
				retain := &interlock.LockOptions{Retain: time.Hour}
				for i := range 5 { // released, retained, re-entered
					contained(func() {
						l := must(t)(c.Mutex(fmt.Sprint(i%2), retain).Lock(t.Context()))
						inner := must(t)(c.Lock(l.Context(t.Context()), fmt.Sprint(i%2)))
						unlock(t, inner)
						unlock(t, l)
					})
				}
				contained(func() { _, _ = c.Lock(t.Context(), "lost") })
				d.failRenewals.Store(true)
				time.Sleep(2 * time.Second)
				d.failReleases.Store(true)
				contained(func() { _, _ = c.Lock(t.Context(), "held until Close") })
				_ = c.Close()
				synctest.Wait()
				gaugesAreZero(t, m)
				if value(t, m, "hold_duration_seconds") != value(t, m, "acquire_total", "result=acquired") {
					t.Error("not every hold has an end")
				}
				d.failReleases.Store(false)
			})
		})
	}
}

// contained calls f, whose panic goes no further.
func contained(f func()) {
	defer func() { _ = recover() }()
	f()
}

func TestMetrics_TakeWhateverTheyAreTold(t *testing.T) {
	m := New(&Options{Buckets: []float64{3, math.NaN(), 1, 1, math.Inf(1), math.Inf(-1), 2}})
	o := m.Observer()
	for _, class := range []string{"", "\xff\xfe", "a\x00b", strings.Repeat("x", 1<<16)} {
		e := interlock.Event{Class: class, Kind: "\xc3", Engine: "\x80", Waited: -1, Held: -1, Margin: math.MinInt64}
		e.Reason = "\xff"
		o.Waiting(t.Context(), e)
		e.Queued = true
		o.Acquired(t.Context(), e)
		o.Renewed(e)
		o.RenewalFailed(e)
		o.Recalled(e)
		o.Lost(e)
	}
	gaugesAreZero(t, m)
	want(t, m, 4, "lost_total", "reason=other")
	want(t, m, 1, "lost_total", "reason=other", "class=\uFFFD")
	New(&Options{Buckets: []float64{math.NaN()}}).Observer().Released(interlock.Event{})
}

func TestMetrics_AreScraped(t *testing.T) {
	m := New(nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	d := memlock.New(nil)
	defer d.Close()
	c := client(t, d, m.Observer(), 0)
	l := must(t)(c.Mutex("a", &interlock.LockOptions{Class: "\xffodd \"class\"\n"}).Lock(t.Context()))
	defer unlock(t, l)

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", answer.Status, text, err)
	}
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	held := families["interlock_held"].GetMetric()
	if len(held) != 1 || held[0].GetGauge().GetValue() != 1 ||
		held[0].GetLabel()[0].GetValue() != "\uFFFDodd \"class\"\n" {
		t.Errorf("scraped %v", held)
	}
}
