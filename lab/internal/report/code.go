package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// listing is the code of an exhibit.
type listing struct {
	Name  string // as directory/file
	Lines []codeLine
}

// codeLine is one line of it. Place is what story.Step.Code calls it.
type codeLine struct {
	Number      int
	Place, Text string
}

// listings returns the files of the exhibits in whose code clients were during an act. What the articles print stands
// in a file beside the code.
func listings(a *story.Act) []listing {
	var exhibits []string
	for i := range a.Steps {
		for _, place := range a.Steps[i].Code {
			if name, _, ok := strings.Cut(place[0], "/"); ok && !slices.Contains(exhibits, name) {
				exhibits = append(exhibits, name)
			}
		}
	}
	slices.Sort(exhibits)
	var all []listing
	for _, dir := range exhibits {
		files, _ := exhibit.Sources.ReadDir(dir) // a record of an exhibit that is gone has no code
		for _, file := range files {
			name := dir + "/" + file.Name()
			if text, err := exhibit.Sources.ReadFile(name); err == nil && !strings.HasSuffix(name, "_test.go") {
				all = append(all, listing{name, lines(name, string(text))})
			}
		}
	}
	return all
}

// lines returns a file's lines without its head: the exhibit begins after the imports.
func lines(name, text string) []codeLine {
	var all []codeLine
	inHead := true
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case inHead && (line == ")" || strings.HasPrefix(line, `import "`)):
			inHead = false
			continue
		case inHead, len(all) == 0 && line == "":
			continue
		}
		n := i + 1
		all = append(all, codeLine{n, name + ":" + strconv.Itoa(n), strings.ReplaceAll(line, "\t", "    ")})
	}
	return all
}
