package run

import (
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// A client of which all is on one way notices each fault.
func TestLinks_AmongThemIsOneThatIsUsed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // so that connections stay
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	used := servers.NewProxy(t, silent.Addr().String())
	c, err := net.Dial("tcp", used.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for open := 0; open == 0; open, _ = used.Connections() {
		if t.Context().Err() != nil {
			t.Fatal("the proxy has accepted nothing")
		}
		runtime.Gosched()
	}
	dice := rand.New(rand.NewPCG(1, 1))
	all := links{{}, used, {}}
	for range 100 {
		if got := all.some(dice); !slices.Contains(got, used) {
			t.Fatalf("%d ways, and none is used", len(got))
		}
	}
}

// A fault is on the one way that there is; of several it is on all, or on some, and on each of them sometimes.
func TestLinks_SomeOrAllOfThem(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 1))
	one := links{{}}
	if got := one.some(dice); len(got) != 1 {
		t.Errorf("of one: %d", len(got))
	}
	five := links{{}, {}, {}, {}, {}}
	whole, counts, hit := 0, map[int]bool{}, map[*servers.Proxy]bool{}
	for range 1000 {
		got := five.some(dice)
		if len(got) == len(five) {
			whole++
			continue
		}
		counts[len(got)] = true
		for i, p := range got {
			hit[p] = true
			if slices.Contains(got[:i], p) {
				t.Fatal("one of them twice")
			}
		}
	}
	if whole < 300 || whole > 700 || len(counts) != 4 || counts[0] || len(hit) != 5 {
		t.Errorf("all of them %d of 1000 times; otherwise so many of five: %v, %d different ones",
			whole, counts, len(hit))
	}
}

// Of ways that are used the one on which most has passed is mostly among them.
func TestLinks_TheBusiestIsMostlyAmongThem(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	go func() { // ends with the listener
		for c, err := echo.Accept(); err == nil; c, err = echo.Accept() {
			go func() { _, _ = io.Copy(c, c) }() // ends with the connection
		}
	}()
	var all links
	for _, size := range []int{10, 1000, 10} {
		p := servers.NewProxy(t, echo.Addr().String())
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	dice, without := rand.New(rand.NewPCG(1, 1)), 0
	for range 1000 {
		if !slices.Contains(all.some(dice), all[1]) {
			without++
		}
	}
	if without == 0 || without > 20 {
		t.Errorf("%d of 1000 times it was not", without)
	}
}
