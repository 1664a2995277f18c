package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
)

// takeTurns has two probes of each version hold one lock in turn, and kills and replaces one of them again and again.
// Nobody may be inside with another, no token may come twice or fall, and both versions must come to their turn between
// two kills.
func takeTurns(t *testing.T, programs, url string) {
	c := &turns{t: t, programs: programs, url: url, dir: t.TempDir()}
	for range 2 {
		c.start("old")
		c.start("new")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	c.bothAdvance()
	for range longrun.Of(3, 12) {
		i := dice.IntN(len(c.probes))
		killed := c.probes[i]
		_ = killed.cmd.Process.Kill() // -9; an error is found by its Wait
		_ = killed.cmd.Wait()
		c.probes = append(c.probes[:i], c.probes[i+1:]...)
		c.start(killed.version)
		c.bothAdvance()
	}
	for _, p := range c.probes {
		p.stdin.Close()
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("a probe of the %s version: %v\n%s", p.version, err, p.stderr)
		}
	}
	c.judge()
}

// turns are probes and what they have written.
type turns struct {
	t                  *testing.T
	programs, url, dir string
	probes             []*probe
	seen               []turn // of the log, as far as it is read
	read               int64
}

type probe struct {
	version string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stderr  *strings.Builder
}

func (c *turns) start(version string) {
	c.t.Helper()
	p := &probe{version: version, stderr: &strings.Builder{}}
	// Not the test's context, which has ended when its clean-up runs: they are killed there.
	p.cmd = exec.CommandContext(context.WithoutCancel(c.t.Context()), filepath.Join(c.programs, version, "probe"),
		"turns", "turns", c.dir, version)
	p.cmd.Env = append(os.Environ(), "INTERLOCK_URL="+c.url)
	p.cmd.Stderr = p.stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.probes = append(c.probes, p)
	c.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // so that nothing writes into the folder that goes
	})
}

// turn is a line of the log.
type turn struct {
	token            uint64
	version, verdict string
}

// log returns all turns so far. It is asked every few milliseconds, so it parses only what is new.
func (c *turns) log() []turn {
	c.t.Helper()
	file, err := os.Open(filepath.Join(c.dir, "log"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	more, err := io.ReadAll(io.NewSectionReader(file, c.read, math.MaxInt64-c.read))
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(more)) {
		var t turn
		if _, err := fmt.Sscan(line, &t.token, &t.version, &t.verdict); err != nil {
			c.t.Fatalf("a line of the log is %q: %v", line, err)
		}
		c.seen = append(c.seen, t)
	}
	c.read += int64(len(more))
	return c.seen
}

// bothAdvance waits until each version has had some turns more. It polls: the probes have nothing to wake us with.
func (c *turns) bothAdvance() {
	c.t.Helper()
	const more = 20 // turns of each
	from := len(c.log())
	for end := time.Now().Add(3 * patience); ; <-time.After(5 * time.Millisecond) {
		count := map[string]int{}
		for _, t := range c.log()[from:] {
			count[t.version]++
		}
		if count["old"] >= more && count["new"] >= more {
			return
		}
		if time.Now().After(end) {
			for _, p := range c.probes {
				_ = p.cmd.Process.Kill()
				_ = p.cmd.Wait() // it has written all then
				c.t.Logf("%s, process %d: %s", p.version, p.cmd.Process.Pid, p.stderr)
			}
			c.t.Fatalf("within %v the versions had only these turns: %v", 3*patience, count)
		}
	}
}

// judge looks at the whole log. Who stayed for longer than its lease is no concern of the lock, nor who met it.
func (c *turns) judge() {
	c.t.Helper()
	late := map[uint64]bool{}
	var all []turn
	for _, t := range c.log() {
		if t.verdict == "late" {
			late[t.token] = true
		} else {
			all = append(all, t)
		}
	}
	handed := 0
	for i, t := range all {
		var before turn
		if i > 0 {
			before = all[i-1]
		}
		if t.verdict != "alone" && !late[before.token] && !late[t.token] {
			c.t.Errorf("turn %d, of the %s version with token %d: %s with token %d",
				i, t.version, t.token, t.verdict, before.token)
		}
		if t.token != 0 && t.token <= before.token && !late[t.token] {
			c.t.Errorf("turn %d, of the %s version, has token %d, the one before, of the %s version, %d", i, t.version,
				t.token, before.version, before.token)
		}
		if i > 0 && t.version != before.version {
			handed++
		}
	}
	c.t.Logf("%d turns, %d of them after one of the other version; %d were late", len(all), handed, len(late))
	if handed == 0 {
		c.t.Error("no turn came after one of the other version: nothing was tried")
	}
}
