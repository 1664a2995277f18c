package mutants

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limit is how long a check may take to notice.
const Limit = 60 * time.Second

// Look is one run of a check.
type Look struct {
	Took    time.Duration
	Red     bool
	Skipped string // why it was not made, if it was not
	Said    string // what it said: of a red one the line that Check.Says describes
	Whole   string // all that it said
}

// bench is where the programs are run.
type bench struct {
	h     *Hunt
	built programs
	turns chan struct{}

	mu     sync.Mutex        // guards greens and the log
	greens map[string]*green // by the key of a check and the seed
}

// green is a check without a mutant, which several mutants may have in common.
type green struct {
	once sync.Once
	look Look
}

// look makes one check of one mutant with every seed.
func (b *bench) look(ctx context.Context, f *Found) {
	for i := range f.Red {
		f.Green[i] = b.without(ctx, f.Check, i+1)
		if f.Green[i].Skipped == "" {
			f.Red[i] = b.run(ctx, f.Check, f.switched(), i+1)
		}
		b.mu.Lock()
		fmt.Fprintf(b.h.Log, "%-4s seed %d  %s, without it %s: %s\n",
			f.Mutant.ID, i+1, f.Red[i].word(), f.Green[i].word(), f.Check.Name)
		if said := f.Red[i].Said; said != "" {
			fmt.Fprintf(b.h.Log, "       %.150s\n", said)
		}
		b.mu.Unlock()
	}
}

func (f *Found) switched() string {
	if f.Check.Switch != "" {
		return f.Check.Switch
	}
	return f.Mutant.ID
}

func (l *Look) word() string {
	switch {
	case l.Skipped != "":
		return "skipped"
	case l.Took == 0:
		return "-"
	case l.Red:
		return fmt.Sprintf("red %.1f s", l.Took.Seconds())
	}
	return fmt.Sprintf("green %.1f s", l.Took.Seconds())
}

// without makes the check without any mutant, once.
func (b *bench) without(ctx context.Context, c *Check, seed int) Look {
	key := c.key() + "\x00" + strconv.Itoa(seed)
	b.mu.Lock()
	g := b.greens[key]
	if g == nil {
		g = &green{}
		b.greens[key] = g
	}
	b.mu.Unlock()
	g.once.Do(func() { g.look = b.run(ctx, c, "", seed) })
	return g.look
}

// run makes a check as that mutant, or as none.
func (b *bench) run(ctx context.Context, c *Check, mutant string, seed int) Look {
	b.turns <- struct{}{}
	defer func() { <-b.turns }()
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.built[c.Where], c.arguments(seed)...)
	cmd.Dir = filepath.Join(b.h.Root, filepath.FromSlash(string(c.Where)))
	// histories of red runs stay there
	cmd.Env = append(os.Environ(), Variable+"="+mutant, "TMPDIR="+filepath.Dir(b.built[c.Where]))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	err := cmd.Run()
	l := Look{Took: time.Since(begun), Red: err != nil, Whole: out.String()}
	switch {
	case ctx.Err() != nil:
		l.Whole += fmt.Sprintf("\nnothing after %v", Limit)
	case err == nil && skip.MatchString(l.Whole):
		l.Skipped = strings.TrimSpace(skip.FindStringSubmatch(l.Whole)[1])
	case err == nil && c.Test != "" && !strings.Contains(l.Whole, "--- PASS"):
		l.Red, l.Whole = true, l.Whole+"\nthere is no such test"
	case l.Red:
		l.Said = lineOf(l.Whole, c.Says)
	}
	return l
}

// skip finds the reason of a test that was skipped, which a test prints before it says so.
var skip = regexp.MustCompile(`(?m)^(.*)\n\s*--- SKIP`)

// arguments are those of one run.
func (c *Check) arguments(seed int) []string {
	args := []string{}
	if c.Test != "" {
		args = append(args, "-test.v", "-test.count=1", "-test.run="+c.Test)
	}
	for _, a := range c.Args {
		args = append(args, strings.ReplaceAll(a, "SEED", strconv.Itoa(seed)))
	}
	return args
}

// lineOf is the first line that the expression describes, or nothing.
func lineOf(text, says string) string {
	which := regexp.MustCompile(says)
	for line := range strings.Lines(text) {
		if which.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// spaced is a name as the testing package shows it.
func spaced(name string) string { return regexp.QuoteMeta(strings.ReplaceAll(name, " ", "_")) }

func join(args []string) string { return strings.Join(args, "\x00") }
