package redislock
import ("testing";"time";"os";"runtime/pprof";"runtime/trace"
"github.com/interlock-go/interlock/drivertest/servers")
func TestZZ(t *testing.T) {
	for range 4 {
	s := servers.RedisServer(t, &servers.RedisOptions{TLS: true})
	w := openWire(t, s.Addr(), &wireOptions{TLS: s.TLS()}, nil)
	s.Stop()
	f, _ := os.Create("/tmp/zz.trace"); trace.Start(f)
	begin := time.Now()
	zzHook = func() { begin = time.Now(); time.AfterFunc(270*time.Millisecond, func() { _ = begin; pprof.Lookup("goroutine").WriteTo(os.Stderr, 2) }) }
	fill(t, w)
	trace.Stop()
	if t.Failed() { os.Exit(1) }
	s.Cont()
	}
}
