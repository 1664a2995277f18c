package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// prove does what users do, with nothing but the proxy: it installs the command both ways and runs it, and for each
// module makes a program that has nothing else, imports its package and runs.
func (r *release) prove(ctx context.Context) error {
	user, err := r.user(ctx, "newcomer")
	if err != nil {
		return err
	}
	for _, way := range []struct {
		args, env []string
		says      string
	}{
		{args: []string{"install", r.installed()}, env: []string{"CGO_ENABLED=0"}, says: "Not in this build"},
		{args: []string{"install", "-tags", "full", r.installed()}, says: "postgres"},
	} {
		if err := r.install(ctx, user, way.args, way.env, way.says); err != nil {
			return err
		}
	}
	for _, m := range r.modules {
		if m.command() {
			continue
		}
		if err := r.importAlone(ctx, user, m); err != nil {
			return fmt.Errorf("a program that imports %s: %w", m.path, err)
		}
		fmt.Printf("   import %s\n", m.path)
	}
	return nil
}

// install installs the command and has it say its version and run a job under a lock.
func (r *release) install(ctx context.Context, user command, args, env []string, says string) error {
	user.env = append(user.env, env...)
	if err := user.run(ctx, "go", args...); err != nil {
		return err
	}
	program := filepath.Join(user.dir, "go", "bin", "interlock")
	said, err := user.output(ctx, program, "version")
	if err != nil {
		return err
	}
	if !strings.Contains(said, r.version) || !strings.Contains(said, says) {
		return fmt.Errorf("the program that go %s made says of itself\n%s", strings.Join(args, " "), said)
	}
	url := "file://" + filepath.Join(user.dir, "locks")
	said, err = user.output(ctx, program, "run", "--url", url, "job", "--", "echo", "ran")
	if err != nil || strings.TrimSpace(said) != "ran" {
		return fmt.Errorf("a job under a lock said %q: %w", said, err)
	}
	fmt.Printf("   go %s\n", strings.Join(args, " "))
	return nil
}

// importAlone makes a module that requires m alone. A program that only imports says that it compiles and its init
// works; that of the root takes a lock too.
func (r *release) importAlone(ctx context.Context, user command, m *published) error {
	user.dir = filepath.Join(user.dir, strings.NewReplacer("/", "-", ".", "root").Replace(m.dir))
	if err := os.MkdirAll(user.dir, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", m.path)
	if m.dir == "." {
		text = fmt.Sprintf(useOfTheRoot, m.path)
	}
	if err := os.WriteFile(filepath.Join(user.dir, "main.go"), []byte(text), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/newcomer"},
		{"get", m.path + "@" + r.version},
		{"mod", "tidy"},
		{"run", "."},
	} {
		if err := user.run(ctx, "go", args...); err != nil {
			return err
		}
	}
	return nil
}

const useOfTheRoot = `package main

import (
	"context"

	"%[1]s"
	_ "%[1]s/memlock"
)

func main() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://", nil)
	if err != nil {
		panic(err)
	}
	lease, err := locks.Lock(ctx, "job")
	if err != nil {
		panic(err)
	}
	if err := lease.Unlock(ctx); err != nil {
		panic(err)
	}
	if err := locks.Close(); err != nil {
		panic(err)
	}
}
`
