package main

import (
	"fmt"
	"slices"
)

const (
	questionsPage = "docs/fresh-reader.md"
	// questions is how many there are at least: with fewer, whole groups of the index have none.
	questions = 10
)

// checkQuestions reports questions of a fresh reader whose answer is not found in two clicks. The first link of a row
// is one of the index. The second, if there is one, is a heading or a link of the page to which the first leads.
func checkQuestions(docs map[string]*doc) []problem {
	d, top := docs[questionsPage], docs[index]
	if d == nil || top == nil {
		return nil
	}
	rows := d.clicks()
	var found []problem
	for _, clicks := range rows {
		if text := wrongClicks(d, clicks, docs); text != "" {
			found = append(found, problem{questionsPage, clicks[0].line, text})
		}
	}
	if len(rows) < questions {
		text := fmt.Sprintf("%d questions with links, want at least %d", len(rows), questions)
		found = append(found, problem{questionsPage, 1, text})
	}
	return found
}

// clicks returns the links of each table row that has some.
func (d *doc) clicks() (rows [][]link) {
	for _, row := range d.rows {
		var clicks []link
		for _, l := range d.links {
			if l.line == row {
				clicks = append(clicks, l)
			}
		}
		if len(clicks) > 0 {
			rows = append(rows, clicks)
		}
	}
	return rows
}

// wrongClicks says why the links do not lead from the index to an answer, or nothing.
func wrongClicks(d *doc, clicks []link, docs map[string]*doc) string {
	first := clicks[0].target
	page, anchor := d.place(first)
	if !docs[index].leadsTo(page, anchor) {
		return "first click " + first + ": " + index + " has no such link"
	}
	if len(clicks) == 1 {
		return ""
	}
	second := clicks[1].target
	to, at := d.place(second)
	if len(clicks) > 2 {
		return "more than two clicks"
	}
	if to == page && at != "" || docs[page] != nil && docs[page].leadsTo(to, at) {
		return ""
	}
	return "second click " + second + ": " + page + " has neither such a heading nor such a link"
}

// leadsTo reports whether d has a link to the place.
func (d *doc) leadsTo(page, anchor string) bool {
	return slices.ContainsFunc(d.links, func(l link) bool {
		p, a := d.place(l.target)
		return p == page && a == anchor
	})
}
