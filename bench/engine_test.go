package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// startEngine returns the address of a server of the test's own, and skips the test where there is none.
func startEngine(t testing.TB, engine string) string {
	t.Helper()
	return startServer(t, engine).Addr
}

func startServer(t testing.TB, engine string) *engined.Server {
	t.Helper()
	s, err := engined.Start(context.Background(), engine)
	if errors.Is(err, engined.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEngineScenarios_EachMeasuresAllOfItsPeers_AndMakesATable(t *testing.T) {
	for _, v := range rivals() {
		t.Run(v.engine, func(t *testing.T) {
			server := startServer(t, v.engine) // one after the other, or the processes of one would be taken for another's
			t.Parallel()                       // most of it waits
			s := &settings{
				rounds: 1, time: 20 * time.Millisecond, dir: t.TempDir(), seed: 1,
				servers: map[string]string{v.engine: server.Addr}, pids: map[string][]int{v.engine: server.PIDs},
			}
			for _, sc := range briefly(choose(engineScenarios(), v.engine+"-")) {
				m, err := measure(t.Context(), sc, s, func(int) {})
				if err != nil {
					t.Fatalf("%s: %v", sc.name, err)
				}
				r := &report{measured: []*measured{m}}
				tables, rounds := r.markdown(), r.benchfmt()
				for _, p := range sc.peers {
					if sc.job.Kind == workload.Turns && (m.median(p, roundTrips) < 2 || runtime.GOOS == "linux" && m.median(p, serverCPU) <= 0) {
						t.Errorf("%s: %s is said to need %v round trips for a lock with its release, at %v ns of the server",
							sc.name, p, m.median(p, roundTrips), m.median(p, serverCPU))
					}
					if !strings.Contains(tables, "| "+p+" |") || !strings.Contains(rounds, "/peer="+p+"-") {
						t.Errorf("%s: %s is missing:\n%s\n%s", sc.name, p, tables, rounds)
					}
				}
				if len(r.wants()) != len(sc.wants) {
					t.Errorf("%s: %d demands are judged, want %d", sc.name, len(r.wants()), len(sc.wants))
				}
			}
		})
	}
}

// The herds are let go when all of them wait in the server, which is what it is asked.
func TestQueue_IsOfThoseWhoWait(t *testing.T) {
	peers := map[string]func(peer.Spec) bool{
		engined.MySQL:    func(s peer.Spec) bool { return s.Name == "get-lock" },
		engined.Postgres: func(s peer.Spec) bool { return s.Name == "advisory" },
	}
	for engine, is := range peers {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // most of it waits
			addr := startEngine(t, engine)
			q, err := engined.OpenQueue(t.Context(), engine, addr)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			all := peer.All()
			p, err := all[slices.IndexFunc(all, is)].Open(t.Context(), peer.Place{Server: addr})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			holder := workerOf(t, p)
			if err := holder.Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
			length(t, q, 0)
			const herd = 3
			got := make(chan error, herd)
			for range herd {
				w := workerOf(t, p)
				go func() { got <- errors.Join(w.Lock(t.Context()), w.Unlock(t.Context())) }() // ends when the holder's turn does
			}
			length(t, q, herd)
			if err := holder.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			for range herd {
				if err := <-got; err != nil {
					t.Error(err)
				}
			}
			length(t, q, 0)
		})
	}
}

func workerOf(t *testing.T, p peer.Peer) peer.Worker {
	t.Helper()
	w, err := p.Worker()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// length waits until so many are in the queue.
func length(t *testing.T, q *engined.Queue, want int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { // real: the server tells nobody
		n, err := q.Len(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d wait, want %d", n, want)
		}
	}
}

// briefly makes the scenarios take a moment. Of the herds it leaves one of each sort.
func briefly(all []scenario) []scenario {
	var some []scenario
	for _, sc := range all {
		if sc.job.Kind == workload.Herd {
			if !strings.HasSuffix(sc.name, "/100") {
				continue
			}
			sc.job.Processes, sc.job.Goroutines = 2, 3
		}
		// PostgreSQL starts a process for each of the peers' connections: five hundred of them, beside four other servers,
		// kept it from answering the next client in time.
		sc.job.Goroutines = min(sc.job.Goroutines, 8)
		some = append(some, sc)
	}
	return some
}

// The witness of each measurement shows that what was measured excludes; see workload.ErrOverlap.
func TestEnginePeers_ExcludeBetweenProcessesAndInside(t *testing.T) {
	for _, v := range rivals() {
		t.Run(v.engine, func(t *testing.T) {
			t.Parallel() // most of it waits
			addr := startEngine(t, v.engine)
			for _, p := range append([]string{v.own()}, v.peers...) {
				j := workload.Job{
					Kind: workload.Contend, Peer: p, Dir: t.TempDir(), Server: addr, Processes: 2, Goroutines: 3,
					Time: 300 * time.Millisecond, Warm: 100 * time.Millisecond,
				}
				r, err := workload.Run(t.Context(), peer.All(), j)
				if err != nil || len(r.Shares) != 2 || r.Rate <= 0 {
					t.Errorf("%s: %v locks/s, shares %v, %v", p, r.Rate, r.Shares, err)
				}
			}
		})
	}
}

func TestEngineScenarios_TogetherHaveEveryPeerOfTheirEngines(t *testing.T) {
	var measured []string
	for _, sc := range engineScenarios() {
		measured = append(measured, sc.peers...)
	}
	for _, p := range peer.All() {
		if p.Engine != "" && !slices.Contains(measured, p.Name) {
			t.Errorf("%s is measured nowhere", p.Name)
		}
	}
	all, err := chosenBy(&settings{scenario: onEngines})
	if err != nil || len(all) != len(engineScenarios()) {
		t.Errorf("%q chooses %s, %v", onEngines, names(all), err)
	}
}

func TestHerds_OfWhichTheLargestNeedsMoreForEach_DoNotGrowLinearly(t *testing.T) {
	v := rivals()[2]
	herd := func(n int, total float64) *measured {
		sc := v.herd(n, true)
		m := &measured{scenario: sc, results: map[string][]workload.Result{}}
		m.results[v.own()] = []workload.Result{{Herd: &workload.HerdResult{Total: total}}}
		return m
	}
	for _, row := range []struct {
		last float64
		kept string
	}{{10e6, "yes"}, {12e6, "yes"}, {30e6, "**no**"}} {
		got := (&report{measured: []*measured{herd(100, 1e6), herd(1000, row.last)}}).herdWants()
		if len(got) != 1 || got[0][3] != row.kept {
			t.Errorf("ten times as many in %v times the time: %q, want %q", row.last/1e6, got, row.kept)
		}
	}
	if got := (&report{measured: []*measured{herd(100, 1e6)}}).herdWants(); len(got) > 0 {
		t.Errorf("one herd is compared with itself: %q", got)
	}
}

func TestHerds_WhereNothingElseIsJudgedAgainst_MayGrowNoFasterThanTheirNumber(t *testing.T) {
	v := rivals()[0]
	herd := func(n, unserved int, total float64) *measured {
		return pretended(v.herd(n, false), func(string) workload.Result {
			return workload.Result{Herd: &workload.HerdResult{Total: total, Unserved: unserved}}
		})
	}
	for _, row := range []struct {
		last     float64
		unserved int
		kept     string
	}{{10e6, 0, "yes"}, {13e6, 0, "**no**"}, {10e6, 1, "**no**"}} {
		got := (&report{measured: []*measured{herd(100, 0, 1e6), herd(1000, row.unserved, row.last)}}).herdWants()
		if len(got) != 1 || got[0][3] != row.kept {
			t.Errorf("ten times as many in %v times the time, %d not served: %q, want %q", row.last/1e6, row.unserved, got, row.kept)
		}
	}
	if wants := herd(1000, 0, 1e6).wants; len(wants) != 2 || wants[1].base != v.base || wants[1].atMost == 0 {
		t.Errorf("%+v, want that the largest herd is compared with %s", wants, v.base)
	}
}

// A thousand sessions may cost the server more than ten times what a hundred cost: what they cost without a lock is its own.
func TestHerds_OfSeparateClients_AreJudgedAgainstSessionsThatDoNotLock(t *testing.T) {
	v := rivals()[2]
	herd := func(n int, own, floor float64) *measured {
		m := &measured{scenario: v.herd(n, false), results: map[string][]workload.Result{}}
		m.results[v.own()] = []workload.Result{{Herd: &workload.HerdResult{Total: own}}}
		m.results[v.floor] = []workload.Result{{Herd: &workload.HerdResult{Total: floor}}}
		return m
	}
	for _, row := range []struct {
		own, floor float64
		kept       string
	}{{12e6, 10e6, "yes"}, {18e6, 15e6, "yes"}, {18e6, 10e6, "**no**"}} {
		got := (&report{measured: []*measured{herd(100, 1e6, 1e6), herd(1000, row.own, row.floor)}}).herdWants()
		if len(got) != 1 || got[0][3] != row.kept {
			t.Errorf("ten times as many in %v times the time, without a lock in %v times: %q, want %q", row.own/1e6, row.floor/1e6, got, row.kept)
		}
	}
}

func TestParse_WriteOfEngines_KeepsItsRoundsElsewhere(t *testing.T) {
	s, err := parse([]string{"-write", "-scenario", onEngines}, new(bytes.Buffer))
	if err != nil || s.raw != engineBaseline {
		t.Errorf("raw %q, %v; want %q", s.raw, err, engineBaseline)
	}
	for _, some := range []string{"zk", "comparison/file"} {
		if _, err := parse([]string{"-write", "-scenario", some}, new(bytes.Buffer)); err == nil {
			t.Errorf("no error although only %s would be written", some)
		}
	}
}

func TestFiles_HaveTheMarkersOfEveryTable(t *testing.T) {
	files := map[marks]string{ofComparison: comparisonFile}
	for _, of := range tables {
		files[of.marks] = readme
	}
	for m, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.between(string(text), ""); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestEngines_AreTheSameInThePictureAndTheTables(t *testing.T) {
	rows := []compare.Row{
		{Label: "A", Alone: compare.Cell{Values: []float64{1e3, 2e3, 9e3}}, Killed: compare.Cell{Values: []float64{1e9, 4e9, 2e9}}},
		{Label: "B", Alone: compare.Cell{Values: []float64{2e6}}, Killed: compare.Cell{Why: "nobody <dies>"}},
	}
	text, svg := comparisonText(rows, "command", "machine"), picture(rows)
	for _, part := range []string{"| A | 2 µs |", "2 s (1 s to 4 s)", "– [1]", "1. Nobody <dies>.", "machine", "command"} {
		if !strings.Contains(text, part) {
			t.Errorf("the tables lack %q:\n%s", part, text)
		}
	}
	for _, part := range []string{">A<", ">B<", ">2 µs<", ">2 ms<", ">2 s<", "nobody &lt;dies&gt;"} {
		if !strings.Contains(svg, part) {
			t.Errorf("the picture lacks %q:\n%s", part, svg)
		}
	}
}

func TestEngined_MissingServerIsNamed(t *testing.T) {
	t.Setenv("PATH", filepath.Join(t.TempDir(), "nothing"))
	t.Setenv("INTERLOCK_REQUIRE", "")
	if _, err := engined.Start(t.Context(), engined.Etcd); !errors.Is(err, engined.ErrMissing) {
		t.Errorf("error %v, want ErrMissing", err)
	}
	if _, err := engined.Start(t.Context(), "nosuch"); err == nil {
		t.Error("no error although there is no such engine")
	}
}
