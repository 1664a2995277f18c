package browsertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/internal/longrun"
)

// watching notes in the page what took long, and when the first row of the table was there.
const watching = `
window.measured = {longest: 0, tasks: 0, row: 0};
new PerformanceObserver((list) => {
  for (const e of list.getEntries()) {
    window.measured.tasks++;
    window.measured.longest = Math.max(window.measured.longest, e.duration);
  }
}).observe({type: 'longtask', buffered: true});
(function seek() {
  if (document.querySelector('tr[data-id]')) window.measured.row = performance.now();
  else requestAnimationFrame(seek);
})();`

// measured is what watching noted, in milliseconds.
type measured struct {
	Longest float64 `json:"longest"`
	Tasks   int     `json:"tasks"`
	Row     float64 `json:"row"`
}

// TestCrowd_OfTenThousandLocks prints what a page with many locks costs. The bounds are those of a machine that does
// much else, with a race detector in the server; the numbers are those of this one.
func TestCrowd_OfTenThousandLocks(t *testing.T) {
	longrun.Only(t)
	const many = 10_000
	s := newSite(t, console.Options{Interval: time.Second, Timeout: 30 * time.Second})
	c := s.newClient("shop-1")
	var leases []*interlock.Lease
	for i := range many {
		leases = append(leases, hold(t.Context(), t, c, fmt.Sprintf("stock:%05d", i), ""))
	}
	p := newTab(t)
	p.Before(watching)
	p.open(s.url(""))
	p.Shows("#n-locks", "10,000")
	p.Until("the first row", "window.measured.row > 0")
	m := eval[measured](p, "window.measured")
	paint := eval[float64](p, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
	t.Logf("%d locks: first paint after %.0f ms, first row after %.0f ms, longest task %.0f ms",
		many, paint, m.Row, m.Longest)
	if paint > 10_000 || m.Longest > 5_000 {
		t.Errorf("the page takes too long to show %d locks", many)
	}
	if rows := eval[int](p, "document.querySelectorAll('tr[data-id]').length"); rows > 80 {
		t.Errorf("%d rows are elements, of which some 20 are seen", rows)
	}

	eval[any](p, "Object.assign(window.measured, {longest: 0, tasks: 0}) && null")
	for i := range 500 { // a busy second
		release(t, leases[i*20])
	}
	p.Shows("#n-locks", "9,500")
	eval[any](p, "(document.getElementById('scroller').scrollTop = 1e9) && null")
	p.Shows("td.c-name", "stock:09999")
	p.Press("/")
	p.Press("stock:07777")
	p.Shows("td.c-name", "stock:07777")
	m = eval[measured](p, "window.measured")
	t.Logf("changes of 500 locks, scrolling and a search: longest task %.0f ms, %d tasks above 50 ms",
		m.Longest, m.Tasks)
	if m.Longest > 5_000 {
		t.Error("the page freezes")
	}
}
