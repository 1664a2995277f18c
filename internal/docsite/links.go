package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

var (
	scheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)
	// copied are files that a page shows, or that are pages themselves: they become part of the site.
	copied = regexp.MustCompile(`\.(html|png|svg|jpg|gif|webp)$`)
)

// relink makes every link of a page one that holds in the site.
func (s *site) relink(p *page) {
	each(p.root, func(l *ast.Link) { l.Destination = s.target(p, l, l.Destination) })
	each(p.root, func(i *ast.Image) { i.Destination = s.target(p, i, i.Destination) })
}

func (s *site) target(p *page, n ast.Node, destination []byte) []byte {
	to, err := s.resolve(p, string(destination))
	if err != nil {
		s.problem(p, lineOf(n, p.source), fmt.Sprintf("link %s: %v", destination, err))
	}
	return []byte(to)
}

// resolve returns what a link of p is in the site.
func (s *site) resolve(p *page, target string) (string, error) {
	if scheme.MatchString(target) {
		return target, nil
	}
	name, anchor, err := p.meant(target)
	if err != nil {
		return "", err
	}
	info, err := fs.Stat(s.tree, name)
	if err != nil {
		return "", errors.New("there is no " + name)
	}
	if readme := path.Join(name, "README.md"); info.IsDir() && s.pages[readme] != nil {
		name = readme
	}
	fragment := ""
	if anchor != "" {
		fragment = "#" + anchor
	}
	switch other := s.pages[name]; {
	case other != nil && anchor != "" && !other.anchors[anchor]:
		return "", errors.New(name + " has no heading with this anchor")
	case other == p && anchor != "":
		return fragment, nil
	case other != nil:
		return p.up() + other.out + fragment, nil
	case copied.MatchString(name):
		return p.up() + name + fragment, s.copyFile(name, anchor)
	}
	return s.sourceOf(p, name) + fragment, nil
}

// meant returns the file that a relative link names, and the anchor in it.
func (p *page) meant(target string) (name, anchor string, err error) {
	plain, err := url.PathUnescape(target)
	if err != nil {
		return "", "", err
	}
	file, anchor, _ := strings.Cut(plain, "#")
	switch {
	case strings.HasPrefix(file, "/"):
		return "", "", errors.New("it is absolute; write it relative to this file")
	case file == "":
		return p.name, anchor, nil
	}
	return path.Join(path.Dir(p.name), file), anchor, nil
}

// up leads from the folder of the page to that of the site.
func (p *page) up() string { return strings.Repeat("../", strings.Count(p.out, "/")) }

// sourceOf returns the link to a file that is no part of the site.
func (s *site) sourceOf(p *page, name string) string {
	source := strings.TrimSuffix(s.source, "/") + "/" + name
	if scheme.MatchString(source) {
		return source
	}
	return p.up() + source
}

// copyFile makes a file part of the site, as it is.
func (s *site) copyFile(name, anchor string) error {
	if s.places[name] {
		return errors.New(name + taken)
	}
	data, err := fs.ReadFile(s.tree, name)
	if err != nil {
		return err
	}
	s.files[name] = data
	if anchor == "" {
		return nil
	}
	for _, m := range idAttribute.FindAllSubmatch(data, -1) {
		if string(m[1]) == anchor {
			return nil
		}
	}
	return errors.New(name + " has nothing with this anchor")
}

// lineOf returns the line of a link: that of its text, or of the paragraph if it has none.
func lineOf(n ast.Node, source []byte) int {
	start := -1
	each(n, func(t *ast.Text) {
		if start < 0 {
			start = t.Segment.Start
		}
	})
	for up := n; start < 0 && up != nil; up = up.Parent() {
		if up.Type() == ast.TypeBlock && up.Lines().Len() > 0 {
			start = up.Lines().At(0).Start
		}
	}
	return 1 + bytes.Count(source[:max(start, 0)], []byte("\n"))
}
