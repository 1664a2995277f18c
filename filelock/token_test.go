//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestNextTokens(t *testing.T) {
	const clock = 1_700_000_000_000_000
	now := time.UnixMicro(clock)
	for _, row := range []struct {
		name  string
		last  uint64
		now   time.Time
		want  int
		first uint64
		n     int
		err   error
	}{
		{"the clock is ahead", clock - 1, now, 16, clock, 16, nil},
		{"no record", 0, now, 1, clock, 1, nil},
		{"nothing asked for", 0, now, 0, clock, 1, nil},
		{"more than is granted", 0, now, 1 << 30, clock, maxBlock, nil},
		{"the clock is at the last token", clock, now, 16, clock + 1, 1, nil},
		{"the clock went back", clock + 5, now, 16, clock + 6, 1, nil},
		{"the clock is before 1970", 7, time.UnixMicro(-5), 16, 8, 1, nil},
		{"the clock is beyond all tokens", 7, time.UnixMicro(maxToken), 16, 8, 1, nil},
		{"the last but one", maxToken - 1, now, 16, maxToken, 1, nil},
		{"used up", maxToken, now, 1, 0, 0, errTokensUsedUp},
	} {
		first, n, err := nextTokens(row.last, row.now, row.want)
		if first != row.first || n != row.n || !errors.Is(err, row.err) {
			t.Errorf("%s: %d, %d, %v, want %d, %d, %v", row.name, first, n, err, row.first, row.n, row.err)
		}
	}
}

// cycle takes and gives back x, and returns the grant.
func cycle(t *testing.T, d *Driver, tokens int) driver.Grant {
	t.Helper()
	r := request(newID(), "x")
	r.Try, r.Tokens = true, tokens
	g, err := d.Acquire(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	release(t, d, r.ID, "x")
	return g
}

func TestTokens_GrowOverProcessesAndBlocks(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	last := uint64(0)
	for i := range 10 {
		g := cycle(t, d, 1+7*i)
		if g.Token <= last {
			t.Fatalf("token %d after %d", g.Token, last)
		}
		last = g.Token + uint64(g.Tokens) - 1
		p := startProcess(t, dir)
		token := p.token("lock 1 x")
		if token <= last {
			t.Fatalf("the other process's token %d after %d", token, last)
		}
		last = token
		p.kill()
	}
}

func TestTokens_WhenTheClockGoesBack_GrowByOne(t *testing.T) {
	d := open(t, t.TempDir())
	clock := time.Now()
	d.now = func() time.Time { return clock }
	first := cycle(t, d, 64)
	if first.Tokens != 64 {
		t.Errorf("%d tokens, want 64", first.Tokens)
	}
	clock = clock.Add(-time.Hour)
	second := cycle(t, d, 64)
	if second.Token != first.Token+64 || second.Tokens != 1 {
		t.Errorf("got %+v after %+v", second, first)
	}
	clock = clock.Add(2 * time.Hour)
	if third := cycle(t, d, 64); third.Token != uint64(clock.UnixMicro()) || third.Tokens != 64 {
		t.Errorf("got %+v, want the clock %d", third, clock.UnixMicro())
	}
}

func TestTokens_AfterTheRecordIsLost_GrowWithTheClock(t *testing.T) {
	var log strings.Builder
	d, err := New(t.TempDir(), &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	clock := time.Now()
	d.now = func() time.Time { return clock }
	path := d.path(mutex("x"))
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := cycle(t, d, 8)
	for _, row := range []struct {
		name string
		lose func()
		told bool
	}{
		{"removed", func() { _ = os.Remove(path) }, false},
		{"emptied", func() { write("") }, false},
		{"a process id", func() { write("12345\n") }, true},
		{"zeros", func() { write(string(make([]byte, 4096))) }, true},
		{"ones", func() { write(strings.Repeat("\xff", 4096)) }, true},
		{"torn", func() { _ = os.Truncate(path, 60) }, true},
	} {
		clock = clock.Add(time.Second) // a restart takes longer than a block is long
		log.Reset()
		row.lose()
		g := cycle(t, d, 8)
		if g.Token < last.Token+uint64(last.Tokens) {
			t.Errorf("%s: %+v after %+v", row.name, g, last)
		}
		if told := strings.Contains(log.String(), path); told != row.told {
			t.Errorf("%s: told is %v, want %v: %s", row.name, told, row.told, log.String())
		}
		last = g
	}
}

func TestAcquire_WhenTokensAreUsedUp_HoldsNothing(t *testing.T) {
	d := open(t, t.TempDir())
	f := openFile(t, d, "x")
	if err := writeRecord(f.fd, 0, &record{First: maxToken, Last: maxToken, Since: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if _, err := try(d, newID(), "x"); !errors.Is(err, errTokensUsedUp) || !strings.Contains(err.Error(), f.path) {
		t.Errorf("got %v", err)
	}
	if err := f.tryLock(); err != nil {
		t.Errorf("the lock is still held: %v", err)
	}
}
