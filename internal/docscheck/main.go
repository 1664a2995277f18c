// Command docscheck checks the repository's documents: that relative links resolve, that drawings have colours for dark
// pages, that the Go code in them is the code of the examples that it was cut from, that a page and its Chinese twin
// have the same structure, that docs/command.zh-CN.md names all that the command's help does, that docs/doctor.md
// explains each finding of interlock doctor, that no page is too long to be read, that docs/README.md leads to each
// page and to the answers of a fresh reader's questions, that no file names a machine's folders or unfinished work,
// that no sentence is built in a way that had to be read twice, and that each field and method of an exported type
// has a comment.
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
	found = append(found, checkLinks(docs, files)...)
	found = append(found, checkPictures(docs, files)...)
	found = append(found, checkSnippets(docs, files)...)
	found = append(found, checkAllTwins(docs)...)
	found = append(found, checkCommandPage(files)...)
	found = append(found, checkFindings(docs, files)...)
	found = append(found, checkLengths(docs, files)...)
	found = append(found, checkIndex(docs)...)
	found = append(found, checkQuestions(docs)...)
	found = append(found, checkWords(files)...)
	found = append(found, checkStyle(files)...)
	found = append(found, checkFields(files)...)
	for _, p := range found {
		fmt.Fprintln(out, p)
	}
	if len(found) > 0 {
		fmt.Fprintf(out, "docscheck: %d problems\n", len(found))
		return 1
	}
	fmt.Fprintf(out, "docscheck: %d documents, nothing to mend\n", len(docs))
	return 0
}
