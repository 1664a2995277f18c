package main

import (
	"path"
	"slices"

	"github.com/yuin/goldmark/ast"
)

// group is a part of the navigation.
type group struct {
	Title string
	Items []item
}

// many is how long a group may be and still be open on every page: longer ones would hide those below.
const many = 25

// inChinese has the titles of groups that come from English pages.
var inChinese = map[string]string{
	"Start": "入门", "Choose": "选型", "Use": "使用", "Run": "运维", "When something breaks": "故障处理", "Extend": "扩展",
	"Evidence": "证据", "Decisions": "设计决策", "Measurements": "测量", "Limits": "限制", "Track record": "缺陷记录",
}

type item struct{ Title, Out, Lang string }

// Open reports whether the group is open on a page.
func (g group) Open(out string) bool {
	return len(g.Items) <= many || slices.ContainsFunc(g.Items, func(i item) bool { return i.Out == out })
}

// menu makes the navigation of a language: what docs/README.md lists, under its headings, and then everything else by
// folder. A page that has no translation appears in the language that it has.
func (s *site) menu(lang string) []group {
	m := &menu{site: s, lang: lang, seen: map[string]bool{"README.md": true}}
	if docs := s.pages["docs/README.md"]; docs != nil {
		docs = s.in(docs, lang)
		m.add("", docs)
		m.list(docs)
	}
	m.rest()
	return m.groups
}

type menu struct {
	site   *site
	lang   string
	seen   map[string]bool // by the English name
	groups []group
}

// add adds a page, or its translation, to the last group of a title, once.
func (m *menu) add(title string, p *page) {
	key := nameIn(p.name, english)
	if m.seen[key] {
		return
	}
	m.seen[key] = true
	p = m.site.in(p, m.lang)
	if n := len(m.groups); n == 0 || m.groups[n-1].Title != title {
		m.groups = append(m.groups, group{Title: title})
	}
	last := &m.groups[len(m.groups)-1]
	last.Items = append(last.Items, item{p.title, p.out, p.lang})
	if key == aboutLab && m.site.files[labPage] != nil {
		last.Items = append(last.Items, item{labels[m.lang].Play, labPage, m.lang})
	}
}

// list adds the pages that an index links to, under the heading that they stand below.
func (m *menu) list(index *page) {
	title := ""
	for n := index.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 2 {
			title = m.named(plain(h, index.source))
			continue
		}
		each(n, func(l *ast.Link) {
			name, _, err := index.meant(string(l.Destination))
			if err != nil || scheme.Match(l.Destination) {
				return
			}
			p := m.site.pages[name]
			if p == nil {
				p = m.site.pages[path.Join(name, "README.md")]
			}
			if p != nil {
				m.add(title, p)
			}
		})
	}
}

// rest adds what is in no group yet. Folders with a single page share the last group.
func (m *menu) rest() {
	single := map[string]*page{}
	for _, dir := range m.site.dirs() {
		var pages []*page
		for _, name := range m.site.names {
			if p := m.site.pages[name]; path.Dir(name) == dir && !m.seen[nameIn(name, english)] && m.shows(p) {
				pages = append(pages, p)
			}
		}
		if len(pages) == 1 && dir != "." {
			single[dir] = pages[0]
			continue
		}
		for _, p := range pages {
			m.add(m.titleOf(dir), p)
		}
	}
	for _, dir := range m.site.dirs() {
		if p := single[dir]; p != nil {
			m.add(labels[m.lang].More, p)
		}
	}
}

// shows reports whether p is the one of its translations that the menu has.
func (m *menu) shows(p *page) bool { return m.site.in(p, m.lang) == p }

// titleOf names a folder by the page that stands for it.
func (m *menu) titleOf(dir string) string {
	if dir == "." {
		return labels[m.lang].Project
	}
	for _, name := range []string{dir + "/README.md", dir + ".md"} {
		if p := m.site.pages[name]; p != nil {
			return m.named(m.site.in(p, m.lang).title)
		}
	}
	return dir
}

// named returns a title of a group in the language of the menu, if it is known.
func (m *menu) named(title string) string {
	if name := inChinese[title]; m.lang == chinese && name != "" {
		return name
	}
	return title
}
