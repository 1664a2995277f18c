package redislock
import ("testing";"time";"os";"fmt";"context";"slices";"sort"
"github.com/redis/rueidis"
"github.com/interlock-go/interlock/drivertest/servers")
var _ = os.Stderr
func med(d []time.Duration) (time.Duration, time.Duration) { slices.Sort(d); return d[len(d)/10], d[len(d)/2] }
func TestZZ(t *testing.T) {
	addr := servers.Redis(t)
	here, there := newPing(t, addr, "here"), newPing(t, addr, "there")
	go func() {
		for there.hear() == nil && there.say("here") == nil {
		}
	}()
	client := newRueidisClient(t, addr)
	a, _ := client.Dedicate()
	b, _ := client.Dedicate()
	pop := func(c rueidis.DedicatedClient, k string) { c.Do(context.Background(), c.B().Blpop().Key(k).Timeout(0).Build()) }
	push := func(c rueidis.DedicatedClient, k string) { c.Do(context.Background(), c.B().Lpush().Key(k).Element("x").Build()) }
	go func() { for { pop(b, "b"); push(b, "a") } }()
	s, _ := client.Dedicate()
	link := startRueidis(t, soloOption(addr), newTeller())
	call := echoCall("x")
	w := startWire(t, addr, nil)
	w.call(t.Context(), &call, true)
	cctx, end := context.WithCancel(t.Context()); defer end()
	ways := map[string]func(){
		"1 wire push": func() { here.say("there"); here.hear() },
		"2 list push": func() { push(a, "b"); pop(a, "a") },
		"3 wire call": func() { w.call(context.Background(), &call, false) },
		"4 wire call ctx": func() { w.call(cctx, &call, false) },
		"5 rueidis sync": func() { s.Do(context.Background(), client.B().Evalsha().Sha1(echoScript.SHA()).Numkeys(0).Arg(call.Args...).Build()) },
		"6 rueidis shared": func() { client.Do(context.Background(), client.B().Evalsha().Sha1(echoScript.SHA()).Numkeys(0).Arg(call.Args...).Build()) },
		"7 link": func() { link.Call(cctx, &call) },
	}
	res := map[string][]time.Duration{}
	for range 60 {
		for n, f := range ways {
			for range 100 { t0 := time.Now(); f(); res[n] = append(res[n], time.Since(t0)) }
		}
	}
	var names []string
	for n := range res { names = append(names, n) }
	sort.Strings(names)
	for _, n := range names { p10, p50 := med(res[n]); fmt.Printf("%-18s p10 %v p50 %v\n", n, p10, p50) }
	os.Exit(0)
}
