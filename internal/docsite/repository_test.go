package main

import (
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var attribute = regexp.MustCompile(`<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]*)"`)

// The pages are read as a browser reads them: where every link leads is looked up among the files that were made.
func TestRepository_HasNoLinkThatLeadsNowhere(t *testing.T) {
	s, err := build(os.DirFS("../.."), "https://example.com/source")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.problems {
		t.Error(p)
	}
	for _, g := range s.menus[chinese] {
		if !strings.ContainsFunc(g.Title, isChinese) && g.Title != "" {
			t.Errorf("in Chinese the group %q has no name", g.Title)
		}
	}
	links := 0
	for _, p := range s.pages {
		for _, m := range attribute.FindAllSubmatch(s.files[p.out], -1) {
			links++
			s.follow(t, p, string(m[1]))
		}
	}
	t.Logf("%d pages, %d links", len(s.pages), links)
	if links < 1000 {
		t.Error("so few links: are they all seen?")
	}
}

// follow fails the test if a link of a page leads nowhere.
func (s *site) follow(t *testing.T, p *page, link string) {
	t.Helper()
	if scheme.MatchString(link) {
		return
	}
	plain, err := url.PathUnescape(link)
	if err != nil {
		t.Errorf("%s: %s: %v", p.out, link, err)
		return
	}
	file, anchor, _ := strings.Cut(plain, "#")
	name := p.out
	if file != "" {
		name = path.Join(path.Dir(p.out), file)
	}
	data, made := s.files[name]
	if !made {
		t.Errorf("%s: %s: there is no %s", p.out, link, name)
	} else if anchor != "" && !strings.Contains(string(data), `id="`+anchor+`"`) {
		t.Errorf("%s: %s: nothing there is called so", p.out, link)
	}
}
