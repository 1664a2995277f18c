// Command release makes everything that a version of interlock is published as, and proves it before anybody can see
// it.
//
// It never touches the working tree: it clones the repository into a temporary folder, writes the version into each
// go.mod there, tags every module in that clone, and from then on uses only what these tags say. What comes out is a
// folder:
//
//	repository.git  the repository with the tags: to push them is to publish
//	proxy/          a GOPROXY of these versions, which the proof installs from
//	*.tar.gz …      the binaries, SHA256SUMS, one SBOM for each binary, NOTES.md
//	lab.html        the lab as a page
//
// usage: release [-offline] -from REPOSITORY -to FOLDER VERSION
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// release is one run.
type release struct {
	from    string // the repository
	to      string // the folder that it makes
	work    string // a temporary one
	version string
	offline bool // the database of vulnerabilities cannot be reached
	modules []*published
	commit  string    // of the repository
	when    time.Time // that commit was made: the only time that appears in what is made
}

// run makes a release, step by step; the first that fails ends it, and nothing is published by any of them.
func run(ctx context.Context, args []string) error {
	r := &release{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.from, "from", ".", "the repository")
	flags.StringVar(&r.to, "to", "dist", "the folder to make; what is in it is deleted")
	flags.BoolVar(&r.offline, "offline", false, "do not look for known vulnerabilities, and say so")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("please name one version, as in v0.1.0")
	}
	r.version = flags.Arg(0)
	if err := r.absolute(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "interlock-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r.work = work
	return r.make(ctx)
}

// make takes the steps.
func (r *release) make(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"check the repository", r.checkRepository},
		{"notes", r.writeNotes},
		{"modules, in the order of what they require", r.stage},
		{"the same from the tags, as Go fetches it", r.fetch},
		{"compare with the version before", r.compareAPI},
		{"known vulnerabilities", r.checkVulnerabilities},
		{"binaries", r.buildAll},
		{"the same binary once more, from empty caches", r.buildAgain},
		{"packages", r.packAll},
		{"install and import as users do", r.prove},
		{"the lab, on the servers of this machine", r.playLab},
		{"checksums", r.writeSums},
		{"tags", r.keepTags},
	} {
		began := time.Now()
		fmt.Printf("== %s\n", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("   %v\n", time.Since(began).Round(100*time.Millisecond))
	}
	fmt.Printf("%s is in %s. Nothing is published: see docs/releasing.md\n", r.version, r.to)
	return nil
}

// absolute makes both folders absolute, because the steps run commands in others.
func (r *release) absolute() (err error) {
	if r.from, err = filepath.Abs(r.from); err != nil {
		return err
	}
	r.to, err = filepath.Abs(r.to)
	return err
}

// keepTags leaves the repository with the tags, without a working tree: tools that walk through this one must not
// find it twice.
func (r *release) keepTags(ctx context.Context) error {
	to := filepath.Join(r.to, "repository.git")
	return command{}.run(ctx, "git", "clone", "--quiet", "--bare", r.repository(), to)
}

func (r *release) repository() string { return filepath.Join(r.work, "repository") }
func (r *release) proxy() string      { return filepath.Join(r.to, "proxy") }
