package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Pinned, so that the same commit is judged in the same way next year.
const (
	gorelease   = "golang.org/x/exp/cmd/gorelease@v0.0.0-20261113113407-e3970619a1a4"
	govulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"
)

// checkRepository refuses what cannot become a release, before anything is made: a version that Go would not take,
// changes that are in no commit, a tag that exists.
func (r *release) checkRepository(ctx context.Context) error {
	if !semver.IsValid(r.version) || semver.Canonical(r.version) != r.version || semver.Major(r.version) > "v1" {
		return fmt.Errorf("%s is no version of a module: write v0.1.0, or v0.2.0-rc.1", r.version)
	}
	source := command{dir: r.from}
	changed, err := source.output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("these changes are in no commit, so nobody could make this release again:\n%s", changed)
	}
	tags, err := source.output(ctx, "git", "tag", "--list", r.version, "*/"+r.version)
	if err != nil {
		return err
	}
	if tags != "" {
		return fmt.Errorf("%s is tagged already; a version never changes: take the next one", r.version)
	}
	made, err := source.output(ctx, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return err
	}
	commit, when, _ := strings.Cut(strings.TrimSpace(made), " ")
	r.commit = commit
	if r.when, err = time.Parse(time.RFC3339, when); err != nil {
		return err
	}
	r.when = r.when.UTC()
	if err := os.RemoveAll(r.to); err != nil {
		return err
	}
	return os.MkdirAll(r.to, 0o755)
}

// writeNotes makes the notes of the release: the section of CHANGELOG.md that has its version as the title, or, for
// who tries a release out, what is unreleased.
func (r *release) writeNotes(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.from, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes := section(string(text), strings.TrimPrefix(r.version, "v"))
	if notes == "" {
		fmt.Printf("   CHANGELOG.md has no section %s yet: these are the notes of Unreleased\n", r.version)
		notes = section(string(text), "Unreleased")
	}
	if notes == "" {
		return errors.New("CHANGELOG.md says of no change, neither of this version nor under Unreleased")
	}
	return os.WriteFile(filepath.Join(r.to, "NOTES.md"), []byte("# interlock "+r.version+"\n\n"+notes+"\n"), 0o644)
}

// section returns what stands in a changelog below the title "## name", which a date may follow.
func section(changelog, name string) string {
	var lines []string
	inside := false
	for line := range strings.Lines(changelog) {
		if title, is := strings.CutPrefix(line, "## "); is {
			word, _, _ := strings.Cut(strings.TrimSpace(title), " ")
			inside = strings.TrimPrefix(strings.Trim(word, "[]"), "v") == name
			continue
		}
		if inside {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}

// checkVulnerabilities asks the Go vulnerability database of all that the full command is made of.
func (r *release) checkVulnerabilities(ctx context.Context) error {
	if r.offline {
		fmt.Println("   NOT DONE: the database was said to be out of reach (OFFLINE=1). Do not publish before it is.")
		return nil
	}
	env := []string{"GOWORK=" + filepath.Join(r.from, "go.work")}
	return command{dir: filepath.Join(r.from, "cmd", "interlock"), env: env}.
		run(ctx, "go", "run", govulncheck, "-tags", "full", "./...")
}

// compareAPI has what each module promises compared with the version before. That fails if the new one says less: a
// break needs a version that says so.
func (r *release) compareAPI(ctx context.Context) error {
	before, err := r.before(ctx)
	if err != nil {
		return err
	}
	if before == "" {
		fmt.Println("   there is no earlier version to compare with")
		return nil
	}
	user, err := r.user(ctx, "compare")
	if err != nil {
		return err
	}
	for _, m := range r.modules {
		if m.command() { // nobody imports it
			continue
		}
		tagged, err := r.git(ctx, "tag", "--list", m.tag(before))
		if err != nil {
			return err
		}
		if tagged == "" {
			fmt.Printf("   %s is new\n", m.dir)
			continue
		}
		if err := r.zip(ctx, m, before, m.tag(before)); err != nil {
			return err
		}
		user.dir = filepath.Join(r.repository(), m.dir)
		said, err := user.output(ctx, "go", "run", gorelease, "-base="+before, "-version="+r.version)
		if err != nil {
			return err
		}
		fmt.Printf("   %s\n%s", m.dir, said)
	}
	return nil
}

// before returns the newest version that is tagged and older than this one, or nothing.
func (r *release) before(ctx context.Context) (string, error) {
	tags, err := r.git(ctx, "tag", "--list", "v*")
	newest := ""
	for _, tag := range strings.Fields(tags) {
		// what is no version is less than every version, and so is ""
		if semver.Compare(tag, r.version) < 0 && semver.Compare(tag, newest) > 0 {
			newest = tag
		}
	}
	return newest, err
}
