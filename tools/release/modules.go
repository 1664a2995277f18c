package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// published is a module that gets the version.
type published struct {
	dir  string // from the root of the repository; "." is the root
	path string
	file *modfile.File
}

// tag is how Go finds a version of the module in the repository.
func (m *published) tag(version string) string { return path.Join(m.dir, version) }

// command reports whether the module is a program, which is installed and not imported.
func (m *published) command() bool { return strings.HasPrefix(m.dir, "cmd/") }

// stage clones the repository, gives each module the version of those that it requires, and tags all at one commit,
// which is a child of the one that is released: the working tree keeps its replace directives.
func (r *release) stage(ctx context.Context) error {
	if err := (command{}).run(ctx, "git", "clone", "--quiet", r.from, r.repository()); err != nil {
		return err
	}
	dirs, err := command{dir: r.repository()}.output(ctx, "scripts/modules.sh", "tagged")
	if err != nil {
		return err
	}
	all, err := readModules(r.repository(), strings.Fields(dirs))
	if err != nil {
		return err
	}
	if r.modules, err = inOrder(all); err != nil {
		return err
	}
	if err := r.commitAs(ctx, "--allow-empty"); err != nil {
		return err
	}
	for _, m := range r.modules {
		if err := r.require(ctx, m); err != nil {
			return fmt.Errorf("%s: %w", m.dir, err)
		}
	}
	for _, m := range r.modules {
		if _, err := r.git(ctx, "tag", m.tag(r.version)); err != nil {
			return err
		}
		fmt.Printf("   %s@%s\n", m.path, r.version)
	}
	return nil
}

// commitAs commits what has changed in the clone, at a time and by a name that make the same commit when it is made
// again.
func (r *release) commitAs(ctx context.Context, more ...string) error {
	when := r.when.Format(time.RFC3339)
	by := []string{"GIT_AUTHOR_DATE=" + when, "GIT_COMMITTER_DATE=" + when}
	args := append([]string{
		"-c", "user.name=interlock", "-c", "user.email=release@interlock.invalid",
		"commit", "--quiet", "--all", "--message", "release: " + r.version,
	}, more...)
	return command{dir: r.repository(), env: by}.run(ctx, "git", args...)
}

func readModules(top string, dirs []string) (all []*published, _ error) {
	for _, dir := range dirs {
		name := filepath.Join(top, dir, "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, &published{dir: dir, path: file.Module.Mod.Path, file: file})
	}
	return all, nil
}

// inOrder sorts modules so that each comes after those that it requires.
func inOrder(all []*published) (sorted []*published, _ error) {
	for len(sorted) < len(all) {
		before := len(sorted)
		for _, m := range all {
			if !slices.Contains(sorted, m) && len(waitsFor(m, all, sorted)) == 0 {
				sorted = append(sorted, m)
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("modules require each other in a circle, behind %d that do not", before)
		}
	}
	return sorted, nil
}

// waitsFor returns those of all that m requires and that are not among sorted.
func waitsFor(m *published, all, sorted []*published) (missing []string) {
	for _, other := range all {
		if m.requires(other.path) && !slices.Contains(sorted, other) {
			missing = append(missing, other.path)
		}
	}
	return missing
}

func (m *published) requires(path string) bool {
	return slices.ContainsFunc(m.file.Require, func(q *modfile.Require) bool { return q.Mod.Path == path })
}

// require writes the version into the go.mod of m, and the sums of what it requires into its go.sum: those modules
// are in the proxy by then, and m is afterwards.
func (r *release) require(ctx context.Context, m *published) error {
	if err := m.rewrite(r.version, r.modules); err != nil {
		return err
	}
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	dir := filepath.Join(r.repository(), m.dir)
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return err
	}
	user, err := r.user(ctx, "stage")
	if err != nil {
		return err
	}
	user.dir = dir
	if err := user.run(ctx, "go", "mod", "tidy"); err != nil {
		return err
	}
	if err := r.commitAs(ctx, "--amend", "--allow-empty"); err != nil {
		return err
	}
	return r.zip(ctx, m, r.version, "HEAD")
}

// rewrite gives the modules that m requires the version, and drops the directives that pointed to their folders.
func (m *published) rewrite(version string, all []*published) error {
	for _, other := range all {
		if m.requires(other.path) {
			if err := m.file.AddRequire(other.path, version); err != nil {
				return err
			}
		}
		if err := m.file.DropReplace(other.path, ""); err != nil {
			return err
		}
	}
	m.file.Cleanup()
	return nil
}

// zip puts a version of m into the proxy: that of a revision of the clone, as Go itself would take it from there.
func (r *release) zip(ctx context.Context, m *published, version, revision string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	base := filepath.Join(r.proxy(), filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(base, version+".zip"))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	is := module.Version{Path: m.path, Version: version}
	if err := zip.CreateFromVCS(out, is, r.repository(), revision, strings.TrimPrefix(m.dir, ".")); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	mod, err := command{dir: r.repository()}.output(ctx, "git", "show", revision+":"+path.Join(m.dir, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", version, r.when.Format(time.RFC3339))
	versions, _ := os.ReadFile(filepath.Join(base, "list")) // there is none at first
	for name, text := range map[string]string{
		version + ".mod": mod, version + ".info": info, "list": string(versions) + version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
