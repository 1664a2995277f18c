// Command docscheck checks what a reader of the documents notices: that links lead somewhere, that quoted code is the
// code of the repository, that a page and its Chinese twin say the same as far as that can be counted, that each page
// is found and a fresh reader's questions are answered within two clicks, and that the manual in Chinese has all flags
// and commands and docs/doctor.md all findings.
//
// usage: docscheck [folder]
package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	os.Exit(run(os.DirFS(root), os.Stdout))
}

// problem is one thing to mend. It prints as editors expect it.
type problem struct {
	path string
	line int
	text string
}

func (p problem) String() string { return fmt.Sprintf("%s:%d: %s", p.path, p.line, p.text) }

// run checks the tree and returns the exit code.
func run(tree fs.FS, out io.Writer) int {
	files, err := readTree(tree)
	if err != nil {
		fmt.Fprintln(out, "docscheck:", err)
		return 1
	}
	docs := parseDocs(files)
	var found []problem
	for _, name := range files.paths() {
		if d := docs[name]; d != nil {
			found = append(found, checkLinks(d, docs, files)...)
			found = append(found, checkSnippets(d, files)...)
			found = append(found, checkTwin(d, docs)...)
		}
	}
	found = append(found, checkQuestions(docs)...)
	found = append(found, checkManuals(files)...)
	for _, p := range found {
		fmt.Fprintln(out, p)
	}
	if len(found) > 0 {
		fmt.Fprintf(out, "docscheck: %d problems\n", len(found))
		return 1
	}
	fmt.Fprintln(out, "docscheck: nothing to mend")
	return 0
}
