package tap_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/bench/tap"
)

// serve answers each line that says so with a line, until the test ends. It returns its address.
func serve(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends when the listener is closed
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c) // ends with its client
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

func answer(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if lines.Text() == "answer" {
			fmt.Fprintln(c, "yes")
		}
	}
}

// client asks the servers behind taps.
type client struct {
	conns   []net.Conn
	answers []*bufio.Scanner
}

func dial(t *testing.T, addrs string) *client {
	t.Helper()
	c := &client{}
	for addr := range strings.SplitSeq(addrs, ",") {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		c.conns, c.answers = append(c.conns, conn), append(c.answers, bufio.NewScanner(conn))
	}
	return c
}

// ask sends what is not answered, and then to each server what is, before it listens to any.
func (c *client) ask(silent int) error {
	for _, conn := range c.conns {
		for range silent {
			if _, err := fmt.Fprintln(conn, "silence"); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(conn, "answer"); err != nil {
			return err
		}
	}
	for _, from := range c.answers {
		if !from.Scan() {
			return errors.New("no answer")
		}
	}
	return nil
}

func open(t *testing.T, addrs string) tap.Taps {
	t.Helper()
	taps, err := tap.New(addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(taps.Close)
	return taps
}

func TestEach_CountsRoundTrips(t *testing.T) {
	one, two := serve(t), serve(t)
	for _, row := range []struct {
		name   string
		addrs  string
		asks   int // in one time
		silent int // lines before each that nobody answers
	}{
		{"one", one, 1, 0},
		{"three, one after the other", one, 3, 0},
		{"several lines that are waited for once", one, 2, 5},
		{"two servers at the same time", one + "," + two, 2, 0},
	} {
		taps := open(t, row.addrs)
		c := dial(t, taps.Addr())
		const n = 10
		done := 0
		got, err := taps.Each(n, func() error {
			for range row.asks {
				if err := c.ask(row.silent); err != nil {
					return err
				}
			}
			done++
			return nil
		})
		if err != nil || got != float64(row.asks) {
			t.Errorf("%s: %v round trips, want %d, %v", row.name, got, row.asks, err)
		}
		if heard, want := taps.Heard(), int64(done*row.asks*len(c.conns)); heard != want || done <= n {
			t.Errorf("%s: heard %d answers after %d times, want %d after more than %d", row.name, heard, done, want, n)
		}
	}
}

func TestEach_EndsAtAnError(t *testing.T) {
	taps := open(t, serve(t))
	broken := errors.New("broken on purpose")
	for _, good := range []int{0, 20} { // while it warms up, and later
		done := 0
		_, err := taps.Each(50, func() error {
			if done == good {
				return broken
			}
			done++
			return nil
		})
		if !errors.Is(err, broken) || done != good {
			t.Errorf("%v after %d times, want %v after %d", err, done, broken, good)
		}
	}
}
