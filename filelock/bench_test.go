//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// BenchmarkUncontended measures one Acquire and Release, and the system calls that they are built on.
func BenchmarkUncontended(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		path := b.TempDir() + "/file"
		for b.Loop() {
			if err := bare(path, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("filelock", func(b *testing.B) {
		d := open(b, b.TempDir())
		r, rel := request("", "nightly"), driver.Release{Key: mutex("nightly")}
		for i := 0; b.Loop(); i++ {
			r.ID = strconv.Itoa(i)
			rel.ID = r.ID
			if err := pair(d, r, &rel, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("filelock/32 names", func(b *testing.B) { // more than are kept open
		d := open(b, b.TempDir())
		r, rel := request("", ""), driver.Release{}
		for i := 0; b.Loop(); i++ {
			r.ID, r.Key = strconv.Itoa(i), mutex(strconv.Itoa(i%32))
			rel.ID, rel.Key = r.ID, r.Key
			if err := pair(d, r, &rel, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTurn measures a goroutine that asks again at once while another waits: a turn (turn.go).
func BenchmarkTurn(b *testing.B) {
	d := open(b, b.TempDir())
	f, err := openLockFile(d.path(mutex("nightly")), d.dir)
	if err != nil {
		b.Fatal(err)
	}
	defer f.close()
	f.joinLine()
	r, rel := request("", "nightly"), driver.Release{Key: mutex("nightly")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.ID = strconv.Itoa(i)
		rel.ID = r.ID
		if err := pair(d, r, &rel, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUncontendedRatio times the driver and the bare system calls alternately, so that other load meets both. It
// compares the best rounds.
func BenchmarkUncontendedRatio(b *testing.B) {
	const round = 500
	path, d := b.TempDir()+"/file", open(b, b.TempDir())
	r, rel := request("", "nightly"), driver.Release{Key: mutex("nightly")}
	id, least := 0, [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		start := time.Now()
		for range round {
			if err := bare(path, 0); err != nil {
				b.Fatal(err)
			}
		}
		middle := time.Now()
		for range round {
			id++
			r.ID = strconv.Itoa(id)
			rel.ID = r.ID
			if err := pair(d, r, &rel, 0); err != nil {
				b.Fatal(err)
			}
		}
		least[0] = min(least[0], middle.Sub(start)/round)
		least[1] = min(least[1], time.Since(middle)/round)
	}
	b.ReportMetric(float64(least[0].Nanoseconds()), "ns/bare")
	b.ReportMetric(float64(least[1].Nanoseconds()), "ns/filelock")
	b.ReportMetric(float64(least[1])/float64(least[0]), "ratio")
}

// BenchmarkProcesses lets 8 processes pass one lock on, bare and with this package, and reports acquisitions per
// second and the smallest share of a process (1 is fair).
func BenchmarkProcesses(b *testing.B) {
	for _, hold := range []time.Duration{0, 20 * time.Microsecond, 100 * time.Microsecond} {
		for _, how := range []string{"bare", "filelock"} {
			b.Run(fmt.Sprintf("hold=%v/%s", hold, how), func(b *testing.B) {
				const processes, lasting = 8, time.Second
				for b.Loop() {
					counts := loops(b, processes, how, b.TempDir(), hold, lasting)
					total := 0
					for _, n := range counts {
						total += n
					}
					b.ReportMetric(float64(total)/lasting.Seconds(), "locks/s")
					b.ReportMetric(float64(slices.Min(counts)*processes)/float64(total), "least-share")
				}
			})
		}
	}
}

// loops runs helper processes that start together, and returns how often each had the lock.
func loops(t testing.TB, n int, args0, dir string, hold, lasting time.Duration) []int {
	t.Helper()
	gate, start, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var cmds []*exec.Cmd
	var outs []io.Reader
	for range n {
		c := exec.Command(os.Args[0], args0, dir, hold.String(), lasting.String())
		c.Env = append(os.Environ(), helperVar+"=loop")
		c.Stdin, c.Stderr = gate, os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // the helper is ready
			t.Fatal(err)
		}
		cmds, outs = append(cmds, c), append(outs, out)
	}
	_ = gate.Close()
	_ = start.Close() // the gate opens
	counts := make([]int, n)
	for i, out := range outs {
		text, _ := io.ReadAll(out)
		if counts[i], err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			t.Fatal(err)
		}
		if err := cmds[i].Wait(); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}

// loop is the helper's side of loops.
func loop(args []string) int {
	hold, _ := time.ParseDuration(args[2])
	lasting, _ := time.ParseDuration(args[3])
	d, err := New(args[1], nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Print("r")
	_, _ = os.Stdin.Read(make([]byte, 1))
	r, rel := request("", "shared"), driver.Release{Key: mutex("shared")}
	n := 0
	for end := time.Now().Add(lasting); time.Now().Before(end); n++ {
		if args[0] == "bare" {
			err = bare(args[1]+"/bare", hold)
		} else {
			r.ID = strconv.Itoa(n)
			rel.ID = r.ID
			err = pair(d, r, &rel, hold)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println(n)
	return 0
}

func pair(d *Driver, r *driver.Request, rel *driver.Release, hold time.Duration) error {
	if _, err := d.Acquire(context.Background(), r); err != nil {
		return err
	}
	spin(hold)
	return d.Release(context.Background(), rel)
}

// bare takes the lock with flock alone, as a program without this package would.
func bare(path string, hold time.Duration) error {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	if err := flock(fd, syscall.LOCK_EX); err != nil {
		return err
	}
	spin(hold)
	if err := syscall.Flock(fd, syscall.LOCK_UN); err != nil {
		return err
	}
	return syscall.Close(fd)
}

// spin keeps a processor busy for d.
func spin(d time.Duration) {
	if d <= 0 {
		return
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}
