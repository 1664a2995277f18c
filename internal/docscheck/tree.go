package main

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// tree is the text files of the repository by path, and what else links may name: folders, and files that are no text.
type tree struct {
	texts  map[string]string
	others map[string]bool
}

func (t *tree) exists(name string) bool {
	_, text := t.texts[name]
	return text || t.others[name]
}

// paths returns the paths of the text files in order, so that the output is the same every time.
func (t *tree) paths() []string { return slices.Sorted(maps.Keys(t.texts)) }

// skipped is what is not ours to check: git's (in a second work tree .git is a file), and what is built or measured.
var skipped = map[string]bool{".git": true, "bin": true, "dist": true, "bench/results": true, "lab.html": true}

func readTree(fsys fs.FS) (*tree, error) {
	t := &tree{texts: map[string]string{}, others: map[string]bool{}}
	return t, fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case skipped[name] && entry.IsDir():
			return fs.SkipDir
		case skipped[name]:
			return nil
		}
		t.others[name] = true
		if !entry.Type().IsRegular() {
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err == nil && bytes.IndexByte(data, 0) < 0 {
			t.texts[name] = strings.ReplaceAll(string(data), "\r\n", "\n")
		}
		return err
	})
}
