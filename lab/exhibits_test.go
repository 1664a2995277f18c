package lab

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/interlock-go/interlock"
	lab      = module + "/lab"
	exhibits = lab + "/exhibit"
)

// shown are the only packages that may use exhibits; play has their connections, report prints their code, and search
// looks for the schedules by which they fail.
var shown = []string{
	lab + "/internal/experiment", lab + "/internal/play", lab + "/internal/report", lab + "/internal/search",
}

// pkg is what go list tells about a package.
type pkg struct {
	ImportPath, Doc string
	Imports         []string
}

// packages lists every package of the workspace, with its tests. All released modules are in the workspace.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-test", "-json=ImportPath,Doc,Imports", "work")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func TestExhibits_AreReachableFromNoReleasedPackage(t *testing.T) {
	others := 0
	for _, p := range packages(t) {
		path, _, _ := strings.Cut(p.ImportPath, " ") // a test variant has a mark
		path = strings.TrimSuffix(strings.TrimSuffix(path, ".test"), "_test")
		for _, imported := range p.Imports {
			imported, _, _ = strings.Cut(imported, " ")
			switch {
			case !below(path, lab) && below(imported, lab):
				t.Errorf("%s imports %s: nothing may be built from what is broken on purpose", path, imported)
			case below(path, lab) && !below(path, exhibits) && below(imported, exhibits) &&
				!slices.Contains(shown, path):
				t.Errorf("%s imports %s: only the experiments show exhibits", path, imported)
			}
		}
		if !below(path, lab) {
			others++
		}
	}
	if others < 10 {
		t.Errorf("only %d packages outside of the lab were looked at; is this run outside of the workspace?", others)
	}
}

func TestExhibits_SayThatTheyAreBroken(t *testing.T) {
	const says = "is an exhibit, broken on purpose:"
	n := 0
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.ImportPath, exhibits+"/") {
			continue
		}
		n++
		if !strings.Contains(p.Doc, says) {
			t.Errorf("the documentation of %s does not say that it %s", p.ImportPath, says)
		}
	}
	if n != 18 {
		t.Errorf("there are %d exhibits, not 18", n)
	}
}
