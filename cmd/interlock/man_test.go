package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// TestMan_HasEveryCommandFlagAndTopic compares the page with the tree of commands, not with a copy of itself: what is
// new must be in it at once.
func TestMan_HasEveryCommandFlagAndTopic(t *testing.T) {
	t.Parallel()
	r := command(t, nil, "man")
	r.want(t, exitOK, ".TH INTERLOCK 1", "")
	page := r.stdout
	has := func(want string) {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, cmd := range (&app{}).rootCommand().Commands() {
		switch {
		case cmd.IsAdditionalHelpTopicCommand():
			has("\n.SH " + strings.ToUpper(strings.ReplaceAll(cmd.Name(), "-", " ")) + "\n")
		case cmd.IsAvailableCommand():
			has("\n.SS \"interlock " + cmd.Name())
			for line := range strings.SplitSeq(cmd.LocalNonPersistentFlags().FlagUsages(), "\n") {
				for _, word := range strings.Fields(line) {
					if strings.HasPrefix(word, "--") {
						has(escapeRoff(word))
					}
				}
			}
		}
	}
	if n := strings.Count(page, "signal n ended the job"); n != 1 {
		t.Errorf("the exit codes are on the page %d times, want once", n)
	}
}

func TestMan_HasNoLineThatRoffWouldObey(t *testing.T) {
	t.Parallel()
	var p roff
	p.text(".so /etc/passwd\n\n  'br\n.TH x\n\n\\fBx\\fR -- it's")
	want := ".PP\n\\&.so /etc/passwd\n.PP\n.nf\n  \\(aqbr\n\\&.TH x\n.fi\n.PP\n\\efBx\\efR \\-\\- it\\(aqs\n"
	if p.String() != want {
		t.Errorf("got %q, want %q", p.String(), want)
	}
}

func TestMan_IsRenderedWithoutWarnings(t *testing.T) {
	t.Parallel()
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(command(t, nil, "man").stdout)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, said.String())
	}
}

func TestCompletion_OffersEnginesAndHeldLocks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"engines":  {[]string{"run", "--url", ""}, "postgres://\n"},
		"flags":    {[]string{"run", "--kill"}, "--kill-grace"},
		"commands": {[]string{"ele"}, "elect"},
		"topics":   {[]string{"help", "exit"}, "exit-codes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command(t, map[string]string{"HOME": t.TempDir()}, append([]string{"__complete"}, c.args...)...).
				want(t, exitOK, c.want, "")
		})
	}
	t.Run("locks", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		acquireOn(t, w)
		command(t, nil, "__complete", "--url", "faulty://"+w.name, "break", "ni").want(t, exitOK, "nightly\n", "")
	})
}
