package servers

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/childproc"
)

// The test binary plays the server when this is set, so that no server needs to be installed.
const role = "INTERLOCK_SERVERS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "answers":
		answerPings()
	case "ends":
		fmt.Println("the disk is on fire")
		os.Exit(3)
	case "leaves":
		leaveAServer()
	}
}

// answerPings is a server that first says that it is loading.
func answerPings() {
	fmt.Println("listening on", os.Args[1])
	l, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for n := 0; ; n++ {
		conn, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		answer := "+PONG\r\n"
		if n < 2 {
			answer = "-LOADING\r\n"
		}
		_, _ = conn.Read(make([]byte, 16))
		_, _ = conn.Write([]byte(answer))
		_ = conn.Close()
	}
}

// leaveAServer starts a server and ends without its cleanups.
func leaveAServer() {
	cmd := exec.Command(os.Args[0], os.Args[1])
	cmd.Env = append(os.Environ(), role+"=answers")
	if _, err := childproc.Start(cmd, nil); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	n := new(RedisNode)
	if err := poll(context.Background(), func(ctx context.Context) error {
		_, err := n.do(ctx, os.Args[1], "PING")
		return err
	}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// double is a Spec of this test binary.
func double(t *testing.T, as string) Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("INTERLOCK_REQUIRE", "double") // with -short as well: it is no server
	return Spec{
		Name: "double", Binaries: []string{exe}, Install: "nothing", Env: []string{role + "=" + as},
		Args:  func(s Site) []string { return []string{s.addr(0)} },
		Ready: func(ctx context.Context, s Site) error { return pingRedis(ctx, s.addr(0)) },
	}
}

func pingRedis(ctx context.Context, addr string) error {
	_, err := new(RedisNode).do(ctx, addr, "PING")
	return err
}

// witness is a testing.TB whose end is told instead of ending the test.
type witness struct {
	testing.TB
	skipped, failed string
	dir             string
	cleanups        []func()
}

func (w *witness) Helper()          {}
func (w *witness) TempDir() string  { return w.dir }
func (w *witness) Failed() bool     { return w.failed != "" }
func (w *witness) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }

func (w *witness) Skipf(format string, args ...any) {
	w.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (w *witness) Fatalf(format string, args ...any) {
	w.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func witnessed(t *testing.T, f func(w *witness)) *witness {
	w := &witness{dir: t.TempDir()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(w)
	}()
	<-done
	return w
}

func TestMissingServer_SkipsOrFailsAsRequired(t *testing.T) {
	for _, row := range []struct {
		require string
		fails   bool
	}{
		{"", false},
		{"etcd", false},
		{"redis", true},
		{"etcd,redis", true},
		{"etcd redis", true},
		{"all", true},
		{"redisx", false},
	} {
		t.Setenv("INTERLOCK_REQUIRE", row.require)
		spec := new(RedisNode).redisSpec("redis")
		spec.Binaries = []string{"no-such-redis", "no-such-valkey"}
		w := witnessed(t, func(w *witness) { Start(w, spec) })
		said := w.skipped + w.failed
		if (w.failed != "") != row.fails || !strings.Contains(said, "install redis-server") {
			t.Errorf("with INTERLOCK_REQUIRE=%q: skipped %q, failed %q", row.require, w.skipped, w.failed)
		}
	}
}

// "all" wants whatever somebody can install or do; what a machine withholds from root itself
// must be listed by its name.
func TestNamespaces_AreWaivedUnlessTheyAreRequired(t *testing.T) {
	noProgram := fmt.Errorf("no ip on PATH: %w", &exec.Error{Name: "ip", Err: exec.ErrNotFound})
	for _, row := range []struct {
		require string
		missing error
		root    bool
		waived  bool
	}{
		{"", noProgram, true, true},
		{"", syscall.EPERM, false, true},
		{"", syscall.EPERM, true, true},
		{"redis", syscall.EPERM, false, true},
		{"all", noProgram, true, false},
		{"all", noProgram, false, false},
		{"all", syscall.EPERM, false, false},
		{"all", syscall.EPERM, true, true},
		{"all,namespaces", syscall.EPERM, true, false},
		{"namespaces", syscall.EPERM, true, false},
		{"namespaces", noProgram, false, false},
	} {
		t.Setenv("INTERLOCK_REQUIRE", row.require)
		if got := waives(row.missing, row.root); got != row.waived {
			t.Errorf("INTERLOCK_REQUIRE=%q, %v, root %v: waived %v, want %v",
				row.require, row.missing, row.root, got, row.waived)
		}
	}
}

func TestStart_ReturnsWhenTheServerIsReadyAndCleanupKillsIt(t *testing.T) {
	spec := double(t, "answers")
	spec.Ports = 2
	prepared := false
	spec.Prepare = func(_ context.Context, s Site) error {
		prepared = true
		return os.WriteFile(filepath.Join(s.Dir, "data"), nil, 0o600)
	}
	var s *Server
	w := witnessed(t, func(w *witness) { s = Start(w, spec) })
	if s == nil {
		t.Fatalf("not started: %s", w.failed)
	}
	if err := pingRedis(t.Context(), s.Addr()); err != nil {
		t.Errorf("a server that is ready does not answer: %v", err)
	}
	if !prepared || len(s.Ports) != 2 || s.Ports[0] == s.Ports[1] {
		t.Errorf("prepared: %v, ports: %v", prepared, s.Ports)
	}
	for _, f := range w.cleanups {
		f()
	}
	if s.Alive() {
		t.Error("the server runs on after the cleanup")
	}
	if conn, err := net.Dial("tcp", s.Addr()); err == nil {
		_ = conn.Close()
		t.Error("the port is still served after the cleanup")
	}
	s.Kill() // once more does no harm
}

func TestServer_DiesWithTheTestsProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a process that its parent has ended")
	}
	ports, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&Site{Host: host, Ports: ports}).addr(0)
	cmd := exec.Command(os.Args[0], addr)
	cmd.Env = append(os.Environ(), role+"=leaves")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	err = poll(bounded(t), func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		if err == nil {
			_ = conn.Close()
			err = errors.New("it still serves")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStart_ShowsTheLogOfAServerThatEnds(t *testing.T) {
	w := witnessed(t, func(w *witness) { Start(w, double(t, "ends")) })
	if !strings.Contains(w.failed, "the disk is on fire") || !strings.Contains(w.failed, "exit status 3") {
		t.Errorf("the failure is %q, want the log and the exit status", w.failed)
	}
}

func TestStart_SaysWhyItCouldNotPrepare(t *testing.T) {
	spec := double(t, "answers")
	spec.Prepare = func(context.Context, Site) error { return errors.New("no space") }
	w := witnessed(t, func(w *witness) { Start(w, spec) })
	if !strings.Contains(w.failed, "no space") {
		t.Errorf("the failure is %q", w.failed)
	}
}

// With -short nothing is started that INTERLOCK_REQUIRE does not want, and what is missing is told all the same.
func TestShort_StartsOnlyWhatIsRequired(t *testing.T) {
	was := flag.Lookup("test.short").Value.String()
	t.Cleanup(func() { _ = flag.Set("test.short", was) })
	if err := flag.Set("test.short", "true"); err != nil {
		t.Fatal(err)
	}
	spec := double(t, "answers")
	for require, starts := range map[string]bool{"": false, "redis": false, "double": true, "all": true} {
		t.Setenv("INTERLOCK_REQUIRE", require)
		w := witnessed(t, func(w *witness) { Start(w, spec) })
		if w.failed != "" || (w.skipped == "") != starts {
			t.Errorf("with INTERLOCK_REQUIRE=%q: skipped %q, failed %q", require, w.skipped, w.failed)
		}
	}
}
