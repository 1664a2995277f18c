package run

import (
	"context"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"
)

// Commit is that of interlock's source: what the program was built from or, where that does not say, as with "go run",
// what the folder is at that it was started in. It is empty if neither is known.
func Commit(ctx context.Context) string {
	var revision, changed string
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " with changes"
			}
		}
	}
	if revision != "" {
		return revision + changed
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--exclude=*", "--abbrev=12",
		"--dirty= with changes").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
