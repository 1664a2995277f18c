package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// site is the documents of a repository, and the files that are made of them.
type site struct {
	tree     fs.FS              // the repository
	source   string             // what a link to a source file begins with
	pages    map[string]*page   // by the path of the Markdown file
	names    []string           // of the pages, in order
	places   map[string]bool    // of the pages in the site
	files    map[string][]byte  // what is written, by path
	menus    map[string][]group // by language
	problems []string
}

// labPage is where make lab writes the page that plays the lab. It is not in the repository, and so nothing links to
// it: if it is there, it becomes part of the site, and the navigation has it behind the page about the lab.
const (
	labPage  = "lab.html"
	aboutLab = "docs/lab.md"
)

// taken is what is wrong with a file that would become part of the site where a page is.
const taken = " is another file's place"

// skipped are folders without documents: what is built, measured, downloaded or input of tests.
var skipped = map[string]bool{"bin": true, "dist": true, "results": true, "testdata": true, "node_modules": true}

// build makes all files of the site. What is wrong with the documents is in problems; an error is of the file system.
func build(tree fs.FS, source string) (*site, error) {
	s := &site{
		tree: tree, source: source,
		pages: map[string]*page{}, places: map[string]bool{}, files: map[string][]byte{},
	}
	if err := s.read(); err != nil {
		return nil, err
	}
	if _, err := fs.Stat(tree, labPage); err == nil {
		if err := s.copyFile(labPage, ""); err != nil {
			return nil, err
		}
	}
	s.menus = map[string][]group{english: s.menu(english), chinese: s.menu(chinese)} // before links are rewritten
	for _, name := range s.names {
		s.relink(s.pages[name])
	}
	for _, name := range s.names {
		p := s.pages[name]
		data, err := s.render(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.files[p.out] = data
	}
	return s, s.addAssets()
}

// read parses every document of the repository.
func (s *site) read() error {
	return fs.WalkDir(s.tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case entry.IsDir() && (skipped[entry.Name()] || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case !entry.Type().IsRegular() || path.Ext(name) != ".md":
			return nil
		}
		data, err := fs.ReadFile(s.tree, name)
		if err != nil {
			return err
		}
		p := parsePage(name, data)
		if s.places[p.out] {
			s.problem(p, 1, p.out+taken)
		}
		s.pages[name], s.places[p.out] = p, true
		s.names = append(s.names, name)
		return nil
	})
}

// addAssets adds the style, the script and the index that it searches.
func (s *site) addAssets() error {
	for _, name := range []string{"style.css", "search.js"} {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		s.files[name] = data
	}
	index, err := s.index()
	s.files["index.js"] = index
	return err
}

func (s *site) problem(p *page, line int, text string) {
	s.problems = append(s.problems, fmt.Sprintf("%s:%d: %s", p.name, line, text))
}

// in returns the page that says in a language what p says, or p if there is none.
func (s *site) in(p *page, lang string) *page {
	if other := s.pages[nameIn(p.name, lang)]; other != nil {
		return other
	}
	return p
}

// twin returns the page that says the same in the other language, or nil.
func (s *site) twin(p *page) *page {
	lang := english
	if p.lang == english {
		lang = chinese
	}
	if other := s.in(p, lang); other != p {
		return other
	}
	return nil
}

// dirs returns the folders that have pages, in order.
func (s *site) dirs() []string {
	var dirs []string
	for _, name := range s.names {
		dirs = append(dirs, path.Dir(name))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
