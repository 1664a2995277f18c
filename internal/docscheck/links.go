package main

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

var scheme = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)

// checkLinks reports relative links to files and headings that are not there. Others' pages are not asked: a check that
// needs the network fails for reasons that are not ours.
func checkLinks(d *doc, docs map[string]*doc, files *tree) (found []problem) {
	for _, l := range d.links {
		name, anchor := d.place(l.target)
		text := ""
		switch other := docs[name]; {
		case scheme.MatchString(l.target):
		case strings.HasPrefix(l.target, "/"):
			text = " is absolute; write it relative to this file"
		case !files.exists(name):
			text = ": there is no " + name
		case anchor != "" && other != nil && !other.heads(anchor):
			text = ": " + name + " has no heading with this anchor"
		}
		if text != "" {
			found = append(found, problem{d.path, l.line, "link " + l.target + text})
		}
	}
	return found
}

// heads reports whether d has a heading with the anchor.
func (d *doc) heads(anchor string) bool {
	return slices.ContainsFunc(d.headings, func(h heading) bool { return h.slug == anchor })
}

// place returns the file and the anchor that a link of d leads to, or nothing for others' pages.
func (d *doc) place(target string) (name, anchor string) {
	plain, err := url.PathUnescape(target)
	if err != nil || scheme.MatchString(target) {
		return "", ""
	}
	file, anchor, _ := strings.Cut(plain, "#")
	if file == "" {
		return d.path, anchor
	}
	return path.Join(path.Dir(d.path), file), anchor
}

// leadsTo reports whether d has a link to the place.
func (d *doc) leadsTo(page, anchor string) bool {
	return slices.ContainsFunc(d.links, func(l link) bool {
		p, a := d.place(l.target)
		return p == page && a == anchor
	})
}
