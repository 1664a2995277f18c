package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command is a program that a step runs.
type command struct {
	dir string
	env []string // beside that of this process
}

// output runs it and returns what it printed. What it says of a failure is part of the error.
func (c command) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, &out, &said)
	}
	return out.String(), nil
}

func (c command) run(ctx context.Context, name string, args ...string) error {
	_, err := c.output(ctx, name, args...)
	return err
}

// git runs git in the clone.
func (r *release) git(ctx context.Context, args ...string) (string, error) {
	out, err := command{dir: r.repository()}.output(ctx, "git", args...)
	return strings.TrimSpace(out), err
}

// user is a machine on which nobody has used Go before: its caches are empty, and it has the modules of this release
// from the proxy that was made. Those of others come from where this machine has them: first from its cache, to
// download nothing twice.
func (r *release) user(ctx context.Context, name string) (command, error) {
	known, err := command{}.output(ctx, "go", "env", "GOMODCACHE", "GOPROXY", "GONOSUMDB")
	if err != nil {
		return command{}, err
	}
	cache, rest, _ := strings.Cut(known, "\n")
	proxy, without, _ := strings.Cut(rest, "\n")
	home := filepath.Join(r.work, name)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return command{}, err
	}
	own := r.modules[0].path
	return command{dir: home, env: []string{
		"GOPATH=" + filepath.Join(home, "go"),
		"GOMODCACHE=" + filepath.Join(home, "go", "pkg", "mod"),
		"GOCACHE=" + filepath.Join(home, "cache"),
		"GOBIN=",
		"GOFLAGS=-modcacherw", // so that it can be deleted
		"GOWORK=off",
		"GOPROXY=" + strings.Join([]string{
			"file://" + r.proxy(), "file://" + filepath.Join(cache, "cache", "download"), strings.TrimSpace(proxy),
		}, ","),
		"GONOSUMDB=" + strings.TrimLeft(strings.TrimSpace(without)+","+own+","+own+"/*", ","),
	}}, nil
}
