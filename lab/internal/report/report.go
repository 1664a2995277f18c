// Package report writes the stories of the lab as one page of HTML that needs nothing else: no network and no files
// beside it. The page has a picture, the code and the steps of every act, which can be read and printed as they are. A
// script, which the page has with it, plays them: it shows an exhibit and the sound lock side by side, step by step.
package report

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"

	"github.com/interlock-go/interlock/lab/internal/story"
)

//go:embed page.html
var text string

//go:embed player.css
var style string

//go:embed player.js
var script string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"both": Both, "t": func(en, zh string) template.HTML { return Both(story.Text{EN: en, ZH: zh}) },
	"draw": draw, "listings": listings, "named": named,
	"label":  label,
	"since":  func(a *story.Act, i int) string { return short(a.Steps[i].At - a.Steps[0].At) },
	"number": func(i int) int { return i + 1 },
	"wired":  wired,
}).Parse(text))

// recorded is a story as the player has it.
type recorded struct {
	*story.Story
	Pairs     []pair       `json:"pairs"`
	Questions [][]question `json:"questions"` // by act

	Servers map[string]string `json:"servers"` // their names in Chinese, if they have others there
}

// Write writes the page. lang is the language that is shown first; the reader can change it.
func Write(w io.Writer, stories []*story.Story, lang story.Lang) error {
	run := []recorded{}
	for _, s := range stories {
		if len(s.Acts) == 0 {
			continue // there is nothing to play
		}
		r := recorded{Story: played(s), Pairs: pairs(s), Servers: map[string]string{}}
		for _, a := range s.Acts {
			r.Questions = append(r.Questions, questions(a))
			for _, server := range a.Keys {
				if name := story.Server(server); name.ZH != name.EN {
					r.Servers[server] = name.ZH
				}
			}
		}
		run = append(run, r)
	}
	return page.Execute(w, struct {
		Stories []*story.Story
		Run     []recorded
		Chinese bool
		Style   template.CSS
		Script  template.JS
	}{stories, run, lang == story.ZH, template.CSS(style), template.JS(script)}) //nolint:gosec // our own files
}

// played is a story without what the player does not use: what went over the wire stands in the text of the page.
func played(s *story.Story) *story.Story {
	rest := *s
	rest.Acts = nil
	for _, a := range s.Acts {
		act := *a
		act.Wire, act.Unsaid = nil, 0
		rest.Acts = append(rest.Acts, &act)
	}
	return &rest
}

// wired tells when something was sent, since the first step: clients connect before that.
func wired(a *story.Act, w *story.Wire) string {
	if len(a.Steps) == 0 {
		return short(0)
	}
	return short(max(w.At-a.Steps[0].At, 0))
}

// Both returns a text in both languages, of which a page shows one.
func Both(t story.Text) template.HTML {
	en, zh := t.In(story.EN), t.In(story.ZH)
	if en == zh {
		return template.HTML(template.HTMLEscapeString(en)) //nolint:gosec // it is escaped
	}
	//nolint:gosec // both are escaped
	return template.HTML(`<span lang="en">` + template.HTMLEscapeString(en) + `</span>` +
		`<span lang="zh-CN">` + template.HTMLEscapeString(zh) + `</span>`)
}

// label returns the attributes of an element whose name only a screen reader tells. The player changes the language.
func label(chinese bool, en, zh string) template.HTMLAttr {
	now := en
	if chinese {
		now = zh
	}
	//nolint:gosec // they are the words of page.html
	return template.HTMLAttr(fmt.Sprintf(` aria-label="%s" data-en="%s" data-zh="%s"`, now, en, zh))
}

// named is a step's text with who did it.
func named(s story.Step) story.Text {
	if s.Who == "" {
		return s.Text
	}
	return story.Join(story.Same(s.Who+": "), s.Text)
}
