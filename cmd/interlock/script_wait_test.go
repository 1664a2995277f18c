// The commands of scripts that wait for something, or look whether it is there; script_test.go lists them.

package main

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for something that should come at once.
const patience = 20 * time.Second

// waitUntil polls: what scripts wait for is done by processes that cannot wake us. A look may start a process, which
// costs more than what it looks at; so the pauses grow, and a long wait leaves the processors to what it waits for.
func waitUntil(ts *testscript.TestScript, what string, done func() bool) {
	const shortest, longest = 5 * time.Millisecond, 160 * time.Millisecond
	end, pause := time.Now().Add(patience), shortest
	for ; !done(); pause = min(2*pause, longest) {
		<-time.After(pause)
		if time.Now().After(end) {
			ts.Fatalf("waited in vain for %s", what)
		}
	}
}

func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		waitUntil(ts, name, func() bool {
			_, err := os.Stat(ts.MkAbs(name))
			return err == nil
		})
	}
}

func waitGrep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitgrep TEXT FILE")
	}
	waitUntil(ts, args[0]+" in "+args[1], func() bool {
		content, err := os.ReadFile(ts.MkAbs(args[1]))
		return err == nil && bytes.Contains(content, []byte(args[0]))
	})
}

func waitOut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitout TEXT CMD [ARG...]")
	}
	var last []byte
	defer func() { ts.Logf("[last stdout]\n%s", last) }()
	waitUntil(ts, args[0]+" from "+strings.Join(args[1:], " "), func() bool {
		last, _ = commandOf(ts, args[1:]).Output() // get ends with 1 while the lock is free
		return bytes.Contains(last, []byte(args[0]))
	})
}

// exists reports whether the process whose id is in a file is there and not a zombie.
func exists(ts *testscript.TestScript, file string) bool {
	pid := strings.TrimSpace(ts.ReadFile(file))
	number, err := strconv.Atoi(pid)
	ts.Check(err)
	if errors.Is(syscall.Kill(number, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

func waitGone(ts *testscript.TestScript, neg bool, args []string) {
	waitUntil(ts, "the end of "+args[0], func() bool { return !exists(ts, args[0]) })
}

func isRunning(ts *testscript.TestScript, neg bool, args []string) {
	if exists(ts, args[0]) == neg {
		ts.Fatalf("running %s: %v", args[0], neg)
	}
}
