// Package report writes the stories of the lab as one page of HTML that needs nothing else: no network and no files
// beside it. The page has a picture, the code and the steps of every act, which can be read and printed as they are. A
// script, which the page has with it, plays them: it shows an exhibit and the sound lock side by side, step by step.
package report

import (
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/lab/exhibit"
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

// listing is the code of an exhibit.
type listing struct {
	Name  string // as directory/file
	Lines []codeLine
}

// codeLine is one line of it. Place is what story.Step.Code calls it.
type codeLine struct {
	Number      int
	Place, Text string
}

// listings returns the files of the exhibits in whose code clients were during an act. What the articles print stands
// in a file beside the code.
func listings(a *story.Act) []listing {
	var exhibits []string
	for i := range a.Steps {
		for _, place := range a.Steps[i].Code {
			if name, _, ok := strings.Cut(place[0], "/"); ok && !slices.Contains(exhibits, name) {
				exhibits = append(exhibits, name)
			}
		}
	}
	slices.Sort(exhibits)
	var all []listing
	for _, dir := range exhibits {
		files, _ := exhibit.Sources.ReadDir(dir) // a record of an exhibit that is gone has no code
		for _, file := range files {
			name := dir + "/" + file.Name()
			if text, err := exhibit.Sources.ReadFile(name); err == nil && !strings.HasSuffix(name, "_test.go") {
				all = append(all, listing{name, lines(name, string(text))})
			}
		}
	}
	return all
}

// lines returns a file's lines without its head: the exhibit begins after the imports.
func lines(name, text string) []codeLine {
	var all []codeLine
	inHead := true
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case inHead && (line == ")" || strings.HasPrefix(line, `import "`)):
			inHead = false
			continue
		case inHead, len(all) == 0 && line == "":
			continue
		}
		n := i + 1
		all = append(all, codeLine{n, name + ":" + strconv.Itoa(n), strings.ReplaceAll(line, "\t", "    ")})
	}
	return all
}

// question is "who gets in next?", asked when something has happened that may let somebody in.
type question struct {
	After   int      `json:"after"`   // the step after which it is asked
	Options []string `json:"options"` // who may get in; nobody may always be
	Answer  string   `json:"answer"`  // "" is nobody, until the end of the act
	Reveal  int      `json:"reveal"`  // the step that gives the answer
}

// questions returns the questions of an act, of which no two are open at once.
func questions(a *story.Act) []question {
	var all []question
	for i := 0; i+1 < len(a.Steps); i++ {
		options := outside(a, i)
		if !opens(a, i) || len(options) == 0 {
			continue
		}
		q := question{After: i, Options: options, Reveal: len(a.Steps) - 1}
		for j := i + 1; j < len(a.Steps); j++ {
			if who := entrant(a, j); who != "" {
				q.Answer, q.Reveal = who, j
				break
			}
		}
		all = append(all, q)
		i = q.Reveal - 1 // what happens in the step of the answer may open the next one
	}
	return all
}

// opens reports whether a step may let somebody in: fate, or a holder that leaves, stops or dies.
func opens(a *story.Act, i int) bool {
	s := &a.Steps[i]
	for _, who := range a.Cast {
		if i > 0 && a.Steps[i-1].States[who] == story.Holds && s.States[who] != story.Holds {
			return true
		}
	}
	return s.Kind == story.Fate
}

// outside returns who could get in after a step.
func outside(a *story.Act, i int) []string {
	var all []string
	for _, who := range a.Cast {
		switch a.Steps[i].States[who] {
		case story.Holds, story.Still, story.Dead:
		default:
			all = append(all, who)
		}
	}
	return all
}

// entrant returns who believes to hold the lock since a step, or "". Who goes on after it stood still was in before.
func entrant(a *story.Act, i int) string {
	for _, who := range a.Cast {
		before := story.Idle
		if i > 0 {
			before = a.Steps[i-1].States[who]
		}
		if a.Steps[i].States[who] == story.Holds && before != story.Holds && before != story.Still {
			return who
		}
	}
	return ""
}
