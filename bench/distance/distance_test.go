package distance_test

import (
	"bufio"
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/distance"
)

func TestMain(m *testing.M) {
	distance.ServeIfChild()
	os.Exit(m.Run())
}

// echo answers each line as a Redis answers PING, and returns where.
func echo(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends when l is closed
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					answer := lines.Text()
					if answer == "PING" {
						answer = "+PONG"
					}
					if _, err := conn.Write([]byte(answer + "\r\n")); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func start(t *testing.T, target string, roundTrip time.Duration) *distance.Way {
	t.Helper()
	w, err := distance.Start(context.Background(), target, roundTrip)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestWay_IsNeverShorterThanItShouldBe(t *testing.T) {
	target := echo(t)
	for _, far := range []time.Duration{0, 100 * time.Microsecond, 10 * time.Millisecond} {
		ns, err := distance.RoundTrip(t.Context(), start(t, target, far).Addr)
		if err != nil || ns < float64(far) {
			t.Errorf("a round trip of %v takes %v, %v", far, time.Duration(ns), err)
		}
		t.Logf("a round trip of %v takes %v", far, time.Duration(ns))
	}
}

func TestWay_KeepsTheOrder_AndLosesNothing(t *testing.T) {
	conn, err := net.Dial("tcp", start(t, echo(t), 2*time.Millisecond).Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var want []string
	for i := range 200 {
		line := strings.Repeat(string(rune('a'+i%26)), 1+i*50)
		want = append(want, line)
	}
	text := []byte(strings.Join(want, "\n") + "\n")
	go func() { _, _ = conn.Write(text) }() // ends with conn, and what is missing is seen below
	answers := bufio.NewReader(conn)
	for i, line := range want {
		if got, err := answers.ReadString('\n'); err != nil || strings.TrimSpace(got) != line {
			t.Fatalf("answer %d has %d bytes, want %d: %v", i, len(got), len(line), err)
		}
	}
}

func TestWay_EndsWithWhatItLeadsTo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := l.Addr().String()
	_ = l.Close()
	if _, err := distance.RoundTrip(t.Context(), start(t, target, 0).Addr); err == nil {
		t.Error("no error although there is no server at the end")
	}
}
