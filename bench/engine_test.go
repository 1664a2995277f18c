package main

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// The herds are let go when all of them wait in the server, which is what it is asked.
func TestQueue_IsOfThoseWhoWait(t *testing.T) {
	peers := map[string]func(peer.Spec) bool{
		engined.MySQL:    func(s peer.Spec) bool { return s.Name == "get-lock" },
		engined.Postgres: func(s peer.Spec) bool { return s.Name == "advisory" },
	}
	for engine, is := range peers {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // most of it waits
			addr := startEngine(t, engine).Addr
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
				// ends when the holder's turn does
				go func() { got <- errors.Join(w.Lock(t.Context()), w.Unlock(t.Context())) }()
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
	w, err := p.Worker(peer.LockName)
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

// The witness of each measurement shows that what was measured excludes; see workload.ErrOverlap.
func TestEnginePeers_ExcludeBetweenProcessesAndInside(t *testing.T) {
	for _, v := range rivals() {
		t.Run(v.engine, func(t *testing.T) {
			t.Parallel() // most of it waits
			addr := startEngine(t, v.engine).Addr
			for _, p := range append([]string{v.own()}, v.peers...) {
				j := workload.Job{
					Kind: workload.Contend, Peer: p, Dir: t.TempDir(), Server: addr, Processes: 2, Goroutines: 3,
					Time: 300 * time.Millisecond, Warm: 100 * time.Millisecond,
				}
				r, err := workload.Run(t.Context(), peer.All(), j)
				for ; err == nil && r.Rate == 0 && j.Time < 10*time.Second; r, err = workload.Run(t.Context(),
					peer.All(), j) {
					j.Time *= 4 // a busy machine needs longer
				}
				if err != nil || len(r.Shares) != 2 || r.Rate <= 0 {
					t.Errorf("%s: %v locks/s, shares %v, %v", p, r.Rate, r.Shares, err)
				}
			}
		})
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
