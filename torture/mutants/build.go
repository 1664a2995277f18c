package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/interlock-go/interlock/internal/overlay"
)

// Root returns the root of the clone that dir is in: mutants are made of its source.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "torture", "mutants")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf(
				"%s is not in a clone of interlock: mutants and models are built from its source, with Go", dir)
		}
	}
}

// programs are what was built, by place.
type programs map[Where]string

// build builds the programs that have checks, all with all mutants, into dir.
func build(ctx context.Context, root, dir string, all []Mutant) (programs, error) {
	list, err := writeOverlay(root, dir)
	if err != nil {
		return nil, err
	}
	built := programs{}
	for i := range all {
		for _, c := range all[i].Checks {
			if built[c.Where] != "" {
				continue
			}
			built[c.Where] = filepath.Join(dir, strings.ReplaceAll(string(c.Where), "/", "-")+".mutant")
			// without what debuggers want
			args := []string{"test", "-c", "-ldflags=-s -w", "-overlay", list, "-o", built[c.Where], "."}
			if c.Where == Torture {
				args = append([]string{"build"}, args[2:]...)
			}
			cmd := exec.CommandContext(ctx, "go", args...)
			cmd.Dir = filepath.Join(root, filepath.FromSlash(string(c.Where)))
			if out, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("building the mutants of %s: %w\n%s", c.Where, err, out)
			}
		}
	}
	return built, nil
}

// writeOverlay writes the changed files into dir, and the list of them that the compiler takes.
func writeOverlay(root, dir string) (string, error) {
	sources, err := edited(root, All())
	if err != nil {
		return "", err
	}
	texts := make(map[string]string, len(sources))
	for file, text := range sources {
		texts[filepath.Join(root, filepath.FromSlash(file))] = text
	}
	return overlay.Write(dir, texts)
}

// edited returns the files with all edits, and those that the edits need.
func edited(root string, all []Mutant) (map[string]string, error) {
	sources := map[string]string{}
	var scripts []Edit
	for i := range all {
		for _, e := range all[i].Edits {
			if path.Ext(e.File) == ".lua" {
				e.As = e.switchOf(&all[i])
				scripts = append(scripts, e)
			}
			if err := e.apply(root, sources); err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].ID, err)
			}
		}
	}
	for _, e := range scripts { // they are changed when they are loaded
		delete(sources, e.File)
	}
	if err := onLoading.apply(root, sources); err != nil {
		return nil, err
	}
	switches := map[string]string{}
	for file, text := range sources {
		name := packageClause.FindStringSubmatch(text)
		if name == nil {
			return nil, fmt.Errorf("%s has no package", file)
		}
		switches[path.Join(path.Dir(file), "switch_of_mutants.go")] = fmt.Sprintf(switchOf, name[1], Variable)
	}
	for _, more := range []map[string]string{
		switches, helpers, {"redislock/scripts_of_mutants.go": changesOfScripts(scripts)},
	} {
		for file, text := range more {
			sources[file] = text
		}
	}
	return sources, nil
}

var packageClause = regexp.MustCompile(`(?m)^package (\w+)$`)

// switchOf is in each package that is edited.
const switchOf = `package %s

import "os"

var mutantNow = os.Getenv(%q)

func isMutant(name string) bool { return mutantNow == name }
`

// apply changes the text of the file, which is read unless that was done before.
func (e *Edit) apply(root string, sources map[string]string) error {
	text, known := sources[e.File]
	if !known {
		read, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
		if err != nil {
			return err
		}
		text = string(read)
	}
	if n := strings.Count(text, e.Old); n != 1 {
		return fmt.Errorf("%q is at %d places of %s, and must be at one: has the code changed?", e.Old, n, e.File)
	}
	if e.Old == e.New {
		return errors.New("an edit that changes nothing")
	}
	sources[e.File] = strings.Replace(text, e.Old, e.New, 1)
	return nil
}

// onLoading lets the mutants of scripts be made when redislock loads them.
var onLoading = Edit{
	File: "redislock/scripts.go", Old: "\t\tsource.Write(text)\n",
	New: "\t\tsource.WriteString(ofMutant(name, string(text)))\n",
}

// changesOfScripts is the file with the edits in Lua.
func changesOfScripts(edits []Edit) string {
	var b strings.Builder
	b.WriteString("package redislock\n\nimport \"strings\"\n\nfunc ofMutant(part, text string) string {\n")
	for _, e := range edits {
		part := strings.TrimSuffix(path.Base(e.File), ".lua")
		fmt.Fprintf(&b, "\tif isMutant(%q) && part == %q {\n\t\ttext = strings.Replace(text, %q, %q, 1)\n\t}\n",
			e.As, part, e.Old, e.New)
	}
	b.WriteString("\treturn text\n}\n")
	return b.String()
}
