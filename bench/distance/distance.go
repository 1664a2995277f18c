// Package distance puts a server far away: a process of its own stands between the clients and a server of this machine
// and lets everything arrive later, to a few microseconds.
//
// It does what the proxy of internal/servers does with Delay, which waits by Go's timers. Those are a millisecond late
// where nothing else keeps the program awake, which is ten times the shortest way that is of interest here.
package distance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// childVar marks a process as one that Start has started; its value is the way and the server.
const childVar = "INTERLOCK_BENCH_DISTANCE"

// Way is a way to a server.
type Way struct {
	Addr string // host:port by which the server is reached

	process *exec.Cmd
	alive   io.Closer // the process lives as long as this is open
}

// Start makes a way to the server at target by which a round trip takes so much longer. The way ends with ctx, and at
// the latest with this process.
func Start(ctx context.Context, target string, roundTrip time.Duration) (*Way, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &Way{process: exec.CommandContext(ctx, self)}
	w.process.Env = append(os.Environ(), fmt.Sprintf("%s=%v %s", childVar, roundTrip/2, target))
	w.process.Stderr = os.Stderr
	in, err := w.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.alive = in
	out, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		err := fmt.Errorf("the process that makes a way to %s has ended without an answer", target)
		return nil, errors.Join(err, w.Close())
	}
	w.Addr = strings.TrimSpace(line)
	return w, nil
}

// Close ends the way and its connections.
func (w *Way) Close() error {
	_ = w.alive.Close()  // ends the process
	_ = w.process.Wait() // how it ended says its standard error
	return nil
}

// ServeIfChild makes a way and ends with its parent if Start has started this process; otherwise it does nothing. A
// program that calls Start calls it first.
func ServeIfChild() {
	what, is := os.LookupEnv(childVar)
	if !is {
		return
	}
	if err := serve(what, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench: distance:", err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent closes its end, or has died
	os.Exit(0)
}

// serve begins to accept connections, and says where.
func serve(what string, say io.Writer) error {
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
	_, err = fmt.Fprintln(say, l.Addr())
	return err
}
