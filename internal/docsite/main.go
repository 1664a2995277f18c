// Command docsite renders the documents of the repository into static pages, which a browser opens from the folder: no
// server is needed, nor for the search. A link that leads nowhere is an error, and then nothing is written.
//
// usage: docsite [-to FOLDER] [-source URL] [FOLDER OF THE REPOSITORY]
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
}

// run renders the documents; out gets a line for each dead link.
func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("docsite", flag.ContinueOnError)
	to := flags.String("to", filepath.Join("bin", "site"), "the folder that the pages are written into")
	source := flags.String("source", "", "`URL` that links to source files begin with; without it they lead "+
		"to the files that the pages were made from")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root := "."
	if flags.NArg() > 0 {
		root = flags.Arg(0)
	}
	if *source == "" {
		relative, err := between(*to, root)
		if err != nil {
			return err
		}
		*source = relative
	}
	s, err := build(os.DirFS(root), *source)
	if err != nil {
		return err
	}
	for _, p := range s.problems {
		fmt.Fprintln(out, p)
	}
	if n := len(s.problems); n > 0 {
		return fmt.Errorf("%d dead links, so nothing is written", n)
	}
	if err := write(*to, s.files); err != nil {
		return err
	}
	fmt.Fprintf(out, "docsite: %d pages, open %s\n", len(s.names), filepath.Join(*to, "index.html"))
	return nil
}

// between returns the path from one folder to another, as a part of a URL.
func between(from, to string) (string, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	return filepath.ToSlash(relative), err
}

func write(folder string, files map[string][]byte) error {
	for name, data := range files {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
