package main

import (
	"maps"
	"slices"
	"strings"
)

const (
	// index is the page from which a reader finds all others.
	index         = "docs/README.md"
	questionsPage = "docs/fresh-reader.md"
)

// checkQuestions reports pages of docs to which no other page leads, and questions of a fresh reader whose answer is
// not found in two clicks. The first link of a row is one of the index. The second, if there is one, is a heading or a
// link of the page to which the first leads.
func checkQuestions(docs map[string]*doc) (found []problem) {
	linked := map[string]bool{index: true}
	for name, d := range docs {
		for _, l := range d.links {
			if to, _ := d.place(l.target); to != name {
				linked[to] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		if strings.HasPrefix(name, "docs/") && !linked[name] {
			found = append(found, problem{name, 1, "no other page has a link to this one"})
		}
	}
	d := docs[questionsPage]
	if d == nil || docs[index] == nil {
		return found
	}
	for _, row := range d.rows {
		var clicks []link
		for _, l := range d.links {
			if l.line == row {
				clicks = append(clicks, l)
			}
		}
		if text := wrongClicks(d, clicks, docs); text != "" {
			found = append(found, problem{questionsPage, row, text})
		}
	}
	return found
}

// wrongClicks says why the links of a row do not lead from the index to an answer, or nothing.
func wrongClicks(d *doc, clicks []link, docs map[string]*doc) string {
	if len(clicks) == 0 { // the head of the table
		return ""
	}
	page, anchor := d.place(clicks[0].target)
	if !docs[index].leadsTo(page, anchor) {
		return "first click " + clicks[0].target + ": " + index + " has no such link"
	}
	for i, click := range clicks[1:] {
		to, at := d.place(click.target)
		if i > 0 || (to != page || at == "") && (docs[page] == nil || !docs[page].leadsTo(to, at)) {
			return "second click " + click.target + ": " + page + " has neither such a heading nor such a link"
		}
	}
	return ""
}
