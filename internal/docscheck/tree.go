package main

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// tree is the text files of the repository by path, and the folders, which links may name too.
type tree struct {
	texts   map[string]string
	folders map[string]bool
	others  map[string]bool // files that are not text
}

func (t *tree) exists(name string) bool {
	_, text := t.texts[name]
	return text || t.folders[name] || t.others[name]
}

// paths returns the paths of the text files in order, so that the output is the same every time.
func (t *tree) paths() []string {
	names := make([]string, 0, len(t.texts))
	for name := range t.texts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// skipped are folders whose content is not ours to check: git's, and what is built or measured.
var skipped = map[string]bool{".git": true, "bin": true, "dist": true, "bench/results": true}

func readTree(fsys fs.FS) (*tree, error) {
	t := &tree{texts: map[string]string{}, folders: map[string]bool{}, others: map[string]bool{}}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped[name] {
				return fs.SkipDir
			}
			t.folders[name] = true
			return nil
		}
		if skipped[name] { // in a second work tree .git is a file
			return nil
		}
		if !entry.Type().IsRegular() || isBuilt(name) {
			t.others[name] = true
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(data, 0) >= 0 {
			t.others[name] = true
			return nil
		}
		t.texts[name] = strings.ReplaceAll(string(data), "\r\n", "\n")
		return nil
	})
	return t, err
}

// isBuilt reports whether git ignores the file: test programs and profiles lie beside the sources.
func isBuilt(name string) bool {
	ext := path.Ext(name)
	return ext == ".test" || ext == ".prof"
}
