// Package distance puts a server far away: a process of its own stands between the clients and a server of this machine
// and lets everything arrive later, to a few microseconds.
//
// It does what the proxy of internal/servers does with Delay, which waits by Go's timers. Those are a millisecond late
// where nothing else keeps the program awake, which is ten times the shortest way that is of interest here.
package distance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
)

// role is that of a process that Start has started, for a way and a server.
const role = "distance"

// Way is a way to a server.
type Way struct {
	Addr string // host:port by which the server is reached

	process *childproc.Child
}

// Start makes a way to the server at target by which a round trip takes so much longer. The way ends with ctx, and at
// the latest with this process.
func Start(ctx context.Context, target string, roundTrip time.Duration) (*Way, error) {
	cmd, err := childproc.Self(ctx, role, fmt.Sprintf("%v %s", roundTrip/2, target))
	if err != nil {
		return nil, err
	}
	process, err := childproc.Open(cmd, nil)
	if err != nil {
		return nil, err
	}
	w := &Way{process: process}
	if err := process.Receive(&w.Addr); err != nil {
		return nil, errors.Join(fmt.Errorf("the process that makes a way to %s: %w", target, err), w.Close())
	}
	return w, nil
}

// Close ends the way and its connections.
func (w *Way) Close() error {
	w.process.Kill()
	return nil
}

// ServeIfChild makes a way and ends with its parent if Start has started this process; otherwise it does nothing. A
// program that calls Start calls it first.
func ServeIfChild() {
	parent, what, is := childproc.Serve(role)
	if !is {
		return
	}
	if err := serve(what, parent); err != nil {
		fmt.Fprintln(os.Stderr, "bench: distance:", err)
		os.Exit(1)
	}
	_ = parent.Receive(new(string)) // ends when the parent closes its end, or has died
	os.Exit(0)
}

// serve begins to accept connections, and says where.
func serve(what string, parent *childproc.Conn) error {
	way, target, _ := strings.Cut(what, " ")
	delay, err := time.ParseDuration(way)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go accept(l, target, delay) // ends with the process
	return parent.Send(l.Addr().String())
}
