package redislock
import ("testing";"time";"os";"fmt";"context";"slices";"sort";"sync";"sync/atomic"
"github.com/interlock-go/interlock/drivertest/servers")
func TestYY(t *testing.T) {
	addr := servers.Redis(t)
	client := newRueidisClient(t, addr)
	link := startRueidis(t, soloOption(addr), newTeller())
	call := echoCall("x")
	w := startWire(t, addr, nil)
	w.call(t.Context(), &call, true)
	cctx, end := context.WithCancel(t.Context()); defer end()
	ways := map[string]func(){
		"3 wire call": func() { w.call(context.Background(), &call, false) },
		"4 wire call ctx": func() { w.call(cctx, &call, false) },
		"6 rueidis shared": func() { client.Do(context.Background(), client.B().Evalsha().Sha1(echoScript.SHA()).Numkeys(0).Arg(call.Args...).Build()) },
		"7 link": func() { link.Call(cctx, &call) },
	}
	var names []string
	for n := range ways { names = append(names, n) }
	sort.Strings(names)
	for _, g := range []int{4, 64, 512} {
	res := map[string][]float64{}
	for range 12 {
		for n, f := range ways {
			wr, rd := w.writes, w.reads
			var stop atomic.Bool
			var ops atomic.Int64
			var wg sync.WaitGroup
			t0 := time.Now()
			for range g { wg.Go(func() { for !stop.Load() { f(); ops.Add(1) } }) }
			time.Sleep(60*time.Millisecond); stop.Store(true); wg.Wait()
			res[n] = append(res[n], float64(time.Since(t0).Microseconds())/float64(ops.Load()))
			if n == "3 wire call" { res["z ops/write"] = append(res["z ops/write"], float64(ops.Load())/float64(w.writes-wr)); res["z ops/read"] = append(res["z ops/read"], float64(ops.Load())/float64(w.reads-rd)) }
		}
	}
	for _, n := range append(names, "z ops/write", "z ops/read") { slices.Sort(res[n]); fmt.Printf("%d %-18s min %.2f p50 %.2f\n", g, n, res[n][0], res[n][len(res[n])/2]) }
	}
	os.Exit(0)
}
