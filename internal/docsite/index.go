package main

import (
	"encoding/json"

	"github.com/yuin/goldmark/ast"
)

// indexed is what the search knows of a page.
type indexed struct {
	Out      string    `json:"out"`
	Lang     string    `json:"lang"`
	Title    string    `json:"title"`
	Sections []section `json:"sections"`
}

// section is a heading with what stands below it.
type section struct {
	Anchor string `json:"anchor"`
	Title  string `json:"title"`
	Text   string `json:"text"`
}

// index is a script, because a page that was opened from a file may load scripts but fetch nothing.
func (s *site) index() ([]byte, error) {
	var all []indexed
	for _, name := range s.names {
		p := s.pages[name]
		all = append(all, indexed{p.out, p.lang, p.title, p.sections()})
	}
	data, err := json.Marshal(all)
	return append(append([]byte("window.documents = "), data...), ";\n"...), err
}

// sections divides a page at its headings.
func (p *page) sections() []section {
	list := []section{{Title: p.title}}
	headings := 0
	for n := p.root.FirstChild(); n != nil; n = n.NextSibling() {
		last := &list[len(list)-1]
		if _, ok := n.(*ast.Heading); !ok {
			last.Text += plain(n, p.source) + " "
			continue
		}
		value, _ := n.AttributeString("id")
		anchor, _ := value.([]byte)
		if headings == 0 && last.Text == "" { // the title of the page
			*last = section{string(anchor), plain(n, p.source), ""}
		} else {
			list = append(list, section{string(anchor), plain(n, p.source), ""})
		}
		headings++
	}
	return list
}
