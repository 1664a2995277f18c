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
func checkLinks(docs map[string]*doc, files *tree) []problem {
	var found []problem
	for _, name := range files.paths() {
		d := docs[name]
		if d == nil {
			continue
		}
		for _, l := range d.links {
			if text := brokenLink(d, l.target, docs, files); text != "" {
				found = append(found, problem{name, l.line, text})
			}
		}
	}
	return found
}

// brokenLink says what is wrong with a link of d, or nothing.
func brokenLink(d *doc, target string, docs map[string]*doc, files *tree) string {
	if scheme.MatchString(target) {
		return ""
	}
	plain, err := url.PathUnescape(target)
	if err != nil {
		return "link " + target + ": " + err.Error()
	}
	file, anchor, _ := strings.Cut(plain, "#")
	if strings.HasPrefix(file, "/") {
		return "link " + target + " is absolute; write it relative to this file"
	}
	name, _ := d.place(target)
	if !files.exists(name) {
		return "link " + target + ": there is no " + name
	}
	other := docs[name]
	if anchor == "" || other == nil {
		return ""
	}
	if !slices.ContainsFunc(other.headings, func(h heading) bool { return h.slug == anchor }) {
		return "link " + target + ": " + name + " has no heading with this anchor"
	}
	return ""
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
