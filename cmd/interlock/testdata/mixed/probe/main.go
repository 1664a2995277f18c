// Command probe does with locks what the command interlock cannot: readers and writers, and many turns in one process.
// The test of mixed versions builds it from an earlier version of the library as well as from this one, so it uses only
// what both have.
//
//	probe read|write NAME CMD [ARG...]   runs CMD while it holds NAME as a reader, or as a writer
//	probe try-read|try-write NAME        ends with 75 if it does not get NAME at once
//	probe turns NAME DIR WHO             holds NAME again and again, until stdin ends
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/etcdlock"
	_ "github.com/interlock-go/interlock/filelock"
	_ "github.com/interlock-go/interlock/mysqllock"
	_ "github.com/interlock-go/interlock/pglock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redislock/redlock"
	_ "github.com/interlock-go/interlock/zklock"
)

// Exit codes, as the command has them.
const (
	exitHeld   = 75
	exitFailed = 125
)

// shortLease is that of turns: for so long a killed probe of a Redis is in everybody's way.
const shortLease = 5 * time.Second

func main() {
	err := run(context.Background(), os.Args[1:])
	var ended *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &ended):
		os.Exit(ended.ExitCode())
	case errors.Is(err, interlock.ErrHeld):
		os.Exit(exitHeld)
	default:
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(exitFailed)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("usage: probe read|write|try-read|try-write|turns NAME ...")
	}
	verb, name, rest := args[0], args[1], args[2:]
	opts := &interlock.Options{}
	if verb == "turns" {
		opts.Lease = shortLease
	}
	c, err := interlock.Open(ctx, os.Getenv("INTERLOCK_URL"), opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	rw := c.RWMutex(name, nil)
	take := map[string]func(context.Context) (*interlock.Lease, error){
		"read": rw.RLock, "write": rw.Lock, "try-read": rw.TryRLock, "try-write": rw.TryLock,
	}[verb]
	switch {
	case verb == "turns" && len(rest) == 2:
		return turns(ctx, c, name, rest[0], rest[1])
	case take == nil:
		return fmt.Errorf("cannot %s %q", verb, args)
	}
	l, err := take(ctx)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		cmd := exec.CommandContext(l.Context(ctx), rest[0], rest[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
	}
	return errors.Join(err, l.Unlock(ctx))
}

// turns holds the lock until stdin ends. Inside it takes the kernel's lock on DIR/oracle, which must be free. It is a
// lock of fcntl: when a process is killed, Linux gives these back first, before its connections and its locks of flock
// end. So nobody's death leaves one behind that the next owner could meet. Each turn is one line of DIR/log, written
// inside.
func turns(ctx context.Context, c *interlock.Client, name, dir, who string) error {
	oracle, err := os.Create(filepath.Join(dir, "oracle"))
	if err != nil {
		return err
	}
	defer oracle.Close()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, stop := context.WithCancel(ctx)
	go func() { // ends with stdin
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
		stop()
	}()
	for ctx.Err() == nil {
		l, err := c.Lock(ctx, name)
		if ctx.Err() != nil && err != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := inside(oracle, log, who, l); err != nil {
			return err
		}
		if err := l.Unlock(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, interlock.ErrLost) {
			return err
		}
	}
	return nil
}

// inside is what a holder does. On a machine that stands still for longer than a lease it may stay for too long, which
// no lock can help: it says so, in a line of its own.
func inside(oracle, log *os.File, who string, l *interlock.Lease) error {
	verdict := "alone"
	if err := setLock(oracle, syscall.F_WRLCK); err != nil {
		verdict = "overlap"
	}
	if _, err := fmt.Fprintf(log, "%d %s %s\n", l.Token(), who, verdict); err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond)
	if deadline := l.Deadline(); l.Err() != nil || !deadline.IsZero() && time.Now().After(deadline) {
		if _, err := fmt.Fprintf(log, "%d %s late\n", l.Token(), who); err != nil {
			return err
		}
	}
	return setLock(oracle, syscall.F_UNLCK)
}

// setLock takes or gives back the lock on a whole file, and does not wait.
func setLock(file *os.File, how int16) error {
	return syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: how, Whence: io.SeekStart})
}
