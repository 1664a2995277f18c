// Package report writes the stories of the lab as one page of HTML that needs nothing else: no network, no files beside
// it, and no script.
package report

import (
	_ "embed" // the page
	"html/template"
	"io"

	"github.com/interlock-go/interlock/lab/internal/story"
)

//go:embed page.html
var text string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"both": both, "draw": draw, "since": since,
	"number": func(i int) int { return i + 1 },
	"style":  func(k story.Kind) string { return string(k) },
	"named":  func(s story.Step) story.Text { return named(&s) },
}).Parse(text))

// Write writes the page. lang is the language that is shown first; the reader can change it.
func Write(w io.Writer, stories []*story.Story, lang story.Lang) error {
	return page.Execute(w, struct {
		Stories []*story.Story
		Chinese bool
	}{stories, lang == story.ZH})
}

// both returns a text in both languages, of which the page shows one.
func both(t story.Text) template.HTML {
	en, zh := t.In(story.EN), t.In(story.ZH)
	if en == zh {
		return template.HTML(template.HTMLEscapeString(en)) //nolint:gosec // it is escaped
	}
	//nolint:gosec // both are escaped
	return template.HTML(`<span lang="en">` + template.HTMLEscapeString(en) + `</span>` +
		`<span lang="zh-CN">` + template.HTMLEscapeString(zh) + `</span>`)
}
