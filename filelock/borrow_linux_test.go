package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/longrun"
)

// Holds on borrowed descriptors exclude each other by the same rules as those of a driver.
func TestAcquireOn_ReadersWritersAndPermits(t *testing.T) {
	for name, row := range map[string]struct {
		first, beside, not *driver.Request
	}{
		"read":    {reader("1"), reader("2"), writer("3")},
		"write":   {writer("1"), nil, reader("3")},
		"permits": {permits("1", 3, 2), permits("2", 3, 1), permits("3", 3, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, t.TempDir())
			shell := shellFile(t, d, row.first.Key)
			if _, err := d.AcquireOn(t.Context(), row.first, shell); err != nil {
				t.Fatal(err)
			}
			if row.beside != nil {
				if err := tryInside(t, d, row.beside); err != nil {
					t.Errorf("beside it: %v", err)
				}
			}
			if err := tryInside(t, d, row.not); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("what cannot be beside it: got %v", err)
			}
			if err := shell.Close(); err != nil {
				t.Error(err)
			}
			again := *row.not
			again.ID = "4"
			if err := tryInside(t, d, &again); err != nil {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

// Two processes ask with the same open file, for which the kernel knows one lock only. One gets it, and the failure of
// the other must not take it away.
func TestAcquireOn_TwoWithTheSameOpenFile_OneGetsIt(t *testing.T) {
	for name, row := range map[string]struct{ holder, one, two, after *driver.Request }{
		"mutex": {request("1", "x"), request("2", "x"), request("3", "x"), request("4", "x")},
		"read":  {writer("1"), reader("2"), reader("3"), writer("4")},
		"write": {reader("1"), writer("2"), writer("3"), reader("4")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir)
			if _, err := d.Acquire(t.Context(), row.holder); err != nil {
				t.Fatal(err)
			}
			shell := shellFile(t, d, row.holder.Key)
			got := make(chan error, 2)
			for _, r := range []*driver.Request{row.one, row.two} {
				told, process := make(chan struct{}, 16), open(t, dir)
				r.Waiting = func(*driver.HeldError) { told <- struct{}{} }
				go func() {
					_, err := process.AcquireOn(t.Context(), r, shell)
					got <- err
				}()
				<-told
			}
			if err := d.Release(context.Background(), &driver.Release{Key: row.holder.Key, ID: "1"}); err != nil {
				t.Fatal(err)
			}
			first, second := <-got, <-got
			if first != nil && second != nil || !errors.Is(errors.Join(first, second), ErrHasLocks) {
				t.Errorf("want one that has the lock and one that is refused, got %v and %v", first, second)
			}
			if err := tryInside(t, d, row.after); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("the open file has the lock: got %v", err)
			}
		})
	}
}

// Several ask at the same moment for a lock that nobody has. Between a look at the open file and its flock another one
// may have got it, and then the kernel grants it to each: they are one open file.
func TestAcquireOn_SeveralAtOnceWithTheSameOpenFile_OneGetsIt(t *testing.T) {
	dir := t.TempDir()
	processes := []*Driver{open(t, dir), open(t, dir), open(t, dir), open(t, dir)}
	for kind, r := range map[string]*driver.Request{
		"mutex": request("", "x"), "write": writer(""), "read": reader(""),
	} {
		for _, try := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, try %v", kind, try), func(t *testing.T) {
				for round := range longrun.Of(300, 3000) {
					shell := shellFile(t, processes[0], r.Key)
					start, got := make(chan struct{}), make(chan error, len(processes))
					for n, d := range processes {
						own := *r
						own.ID, own.Try = fmt.Sprint(kind, try, round, n), try
						go func() {
							<-start
							_, err := d.AcquireOn(t.Context(), &own, shell)
							got <- err
						}()
					}
					close(start)
					granted, refused := 0, []error(nil)
					for range processes {
						if err := <-got; err == nil {
							granted++
						} else {
							refused = append(refused, err)
						}
					}
					if granted != 1 {
						t.Fatalf("round %d: %d got it; the others: %v", round, granted, refused)
					}
					for _, err := range refused {
						if !errors.Is(err, ErrHasLocks) && !(try && errors.Is(err, driver.ErrHeld)) {
							t.Errorf("round %d: refused with %v", round, err)
						}
					}
					if err := shell.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// The gate of a borrowed file is unlocked expressly, and not by closing: a child that is just being forked has the
// descriptor too.
func TestBorrow_UnlockLeavesTheGate(t *testing.T) {
	d := open(t, t.TempDir())
	key := reader("1").Key
	f, err := d.borrow(key, shellFile(t, d, key))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.enterGate(); err != nil {
		t.Fatal(err)
	}
	child, err := f.duplicate()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Close() }()
	f.unlock()
	f.dispose()
	if err := tryInside(t, d, reader("2")); err != nil {
		t.Errorf("got %v", err)
	}
}

// Without /proc, or with too many open files, nobody knows whether the open file has a lock. That must let nobody in.
func TestVacant_WhereNobodyKnows_Refuses(t *testing.T) {
	f := &lockFile{borrows: true, borrowed: -1} // of which /proc has nothing either
	if err := f.vacant(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
