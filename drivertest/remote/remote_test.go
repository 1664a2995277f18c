package remote_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
	"github.com/interlock-go/interlock/drivertest/remote"
	"github.com/interlock-go/interlock/memlock"
)

func TestMain(m *testing.M) {
	remote.Main(func(arg string) (driver.Driver, error) {
		if arg == "refuse" {
			return nil, &driver.UnavailableError{Op: "open", Err: errors.New("no such store")}
		}
		return memlock.New(nil), nil
	})
	os.Exit(m.Run())
}

func open(t *testing.T) (driver.Driver, *remote.Process) {
	t.Helper()
	d, p, err := remote.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, p
}

var key = driver.Key{Kind: driver.KindMutex, Name: "x"}

func ask(id string) *driver.Request {
	return &driver.Request{Key: key, ID: id, Weight: 1, Tokens: 1, Lease: time.Minute, Client: "client " + id}
}

func TestOpen_ReportsTheErrorOfTheProcess(t *testing.T) {
	_, _, err := remote.Open("refuse")
	if !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("the error is %v, want ErrUnavailable", err)
	}
}

// one is a driver whose Close does nothing, so that a single remote client can play all clients of its store.
type one struct{ optional.All }

func (one) Close() error { return nil }

func TestARemoteDriver_KeepsThePromisesOfTheOneBehindIt(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases; with -short filelock's conformance test uses remote drivers")
	}
	d, _ := open(t)
	drivertest.Run(t, drivertest.Harness{
		Unlisted: true,
		Open: func(context.Context, *testing.T) driver.Driver {
			return one{d.(optional.All)}
		},
	})
}

func TestErrors_KeepWhatTheyMatch(t *testing.T) {
	d, _ := open(t)
	g, err := d.Acquire(t.Context(), ask("a"))
	if err != nil {
		t.Fatal(err)
	}
	try := ask("b")
	try.Try = true
	_, err = d.Acquire(t.Context(), try)
	var held *driver.HeldError
	if !errors.As(err, &held) || held.Token != g.Token || held.Client != "client a" || !driver.IsDefinite(err) {
		t.Errorf("a refused try says %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wait := ask("c")
	wait.Waiting = func(*driver.HeldError) { cancel() }
	if _, err = d.Acquire(ctx, wait); !errors.Is(err, context.Canceled) || driver.IsDefinite(err) {
		t.Errorf("a cancelled wait says %v", err)
	}
	err = d.Release(t.Context(), &driver.Release{Key: key, ID: "nobody"})
	var lost *driver.LostError
	if !errors.As(err, &lost) || !errors.Is(err, driver.ErrLost) {
		t.Errorf("a release of nothing says %v", err)
	}
}

func TestKill_EndsCallsThatAreUnderWay(t *testing.T) {
	d, p := open(t)
	if _, err := d.Acquire(t.Context(), ask("a")); err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	r := ask("b")
	r.Waiting = func(*driver.HeldError) { close(waits) }
	returned := make(chan error, 1)
	go func() {
		_, err := d.Acquire(t.Context(), r)
		returned <- err
	}()
	<-waits
	p.Kill()
	if err := <-returned; !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a call that the kill has met says %v, want ErrUnavailable", err)
	}
	if _, err := d.Acquire(t.Context(), ask("c")); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("a call after the kill says %v, want ErrUnavailable", err)
	}
}
