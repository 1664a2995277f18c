package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The command is built with every engine: who takes a binary has nothing to compile, so the light build
// (docs/rationale.md, Light and full) would save them nothing that they notice.
var (
	buildArgs = []string{"install", "-tags=full", "-trimpath", "-ldflags=-s -w -buildid="}
	platforms = []platform{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	}
)

// platform is a system and a processor that binaries are made for. Windows is not among them: the command has no way
// there to end a job with all that it has started. The library is built for Windows, and its file locks are tested
// there.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// installed is the command's package.
func (r *release) installed() string { return r.modules[0].path + "/cmd/interlock@" + r.version }

// build makes the command as anybody else can make it: go install of the version. It returns the file's name.
func (r *release) build(ctx context.Context, user command, p platform) (string, error) {
	user.env = append(slices.Clone(user.env), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0")
	if err := user.run(ctx, "go", append(slices.Clone(buildArgs), r.installed())...); err != nil {
		return "", err
	}
	bin := filepath.Join(user.dir, "go", "bin")
	if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
		bin = filepath.Join(bin, p.String()) // where go install puts what this machine cannot run
	}
	return filepath.Join(bin, "interlock"), nil
}

// buildAll makes the binaries, an archive of each and a list of what each is made of.
func (r *release) buildAll(ctx context.Context) error {
	user, err := r.user(ctx, "build")
	if err != nil {
		return err
	}
	for _, p := range platforms {
		binary, err := r.build(ctx, user, p)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		name := fmt.Sprintf("interlock_%s_%v", r.version, p)
		if err := r.archive(name+".tar.gz", binary); err != nil {
			return err
		}
		if err := r.listParts(name+".cdx.json", binary); err != nil {
			return err
		}
		fmt.Println("   " + name)
	}
	return nil
}

// buildAgain makes one binary where nothing is left of the first time, in another folder, and compares the bytes.
func (r *release) buildAgain(ctx context.Context) error {
	user, err := r.user(ctx, "again")
	if err != nil {
		return err
	}
	here := platform{runtime.GOOS, runtime.GOARCH}
	binary, err := r.build(ctx, user, here)
	if err != nil {
		return err
	}
	again, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	first, err := os.ReadFile(r.binary(here))
	if err != nil {
		return err
	}
	if !bytes.Equal(first, again) {
		return errors.New("two builds of the same version differ")
	}
	fmt.Printf("   %v: %d bytes, the same\n", here, len(first))
	return nil
}

// binary returns where buildAll left the binary of a platform.
func (r *release) binary(p platform) string {
	bin := filepath.Join(r.work, "build", "go", "bin")
	if p.os != runtime.GOOS || p.arch != runtime.GOARCH {
		bin = filepath.Join(bin, p.String())
	}
	return filepath.Join(bin, "interlock")
}

// playLab runs every experiment of the lab and writes the page that plays them. The run is a real one, so the bytes of
// the page are other ones each time. An experiment that shows something else than it should ends the release.
func (r *release) playLab(ctx context.Context) error {
	env := []string{"GOWORK=" + filepath.Join(r.from, "go.work")}
	page := filepath.Join(r.to, "lab.html")
	return command{dir: filepath.Join(r.from, "lab"), env: env}.
		run(ctx, "go", "run", "./cmd/interlock-lab", "--all", "--lang", "en", "--report", page)
}

// packAll makes packages of systems (deb), completions and manual pages, which have a script of their own.
func (r *release) packAll(ctx context.Context) error {
	script := filepath.Join(r.repository(), "scripts", "package.sh")
	if _, err := os.Stat(script); errors.Is(err, fs.ErrNotExist) {
		fmt.Println("   none: there is no scripts/package.sh")
		return nil
	}
	env := []string{"SOURCE_DATE_EPOCH=" + fmt.Sprint(r.when.Unix())}
	for _, p := range platforms {
		if p.os != "linux" {
			continue
		}
		said, err := command{dir: r.repository(), env: env}.
			output(ctx, script, r.to, strings.TrimPrefix(r.version, "v"), p.arch, r.binary(p),
				r.binary(platform{runtime.GOOS, runtime.GOARCH}))
		if err != nil {
			return err
		}
		fmt.Print(said)
	}
	return nil
}
