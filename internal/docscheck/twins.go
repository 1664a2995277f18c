package main

import (
	"fmt"
	"slices"
	"strings"
)

// inChinese ends the name of the Chinese twin of a page.
const inChinese = ".zh-CN.md"

// firstLines is where a page has to link to its twin, so that readers of the other language find it.
const firstLines = 10

// checkTwin compares a page in Chinese with its English twin: the levels of headings, the code and the number of table
// rows. A page that is there in English only has no twin, but README.md must have one.
func checkTwin(d *doc, docs map[string]*doc) (found []problem) {
	page, chinese := strings.CutSuffix(d.path, inChinese)
	switch {
	case d.path == "README.md" && docs["README"+inChinese] == nil:
		return []problem{{d.path, 1, "there is no README" + inChinese}}
	case !chinese || d.path == manual:
		return nil
	}
	twin := docs[page+".md"]
	if twin == nil {
		return []problem{{d.path, 1, "there is no " + page + ".md"}}
	}
	for _, pair := range [][2]*doc{{twin, d}, {d, twin}} {
		from, want := pair[0], pair[1].path
		early := func(l link) bool { to, _ := from.place(l.target); return to == want && l.line <= firstLines }
		if !slices.ContainsFunc(from.links, early) {
			text := fmt.Sprintf("no link to %s in the first %d lines", want, firstLines)
			found = append(found, problem{from.path, 1, text})
		}
	}
	mine, others := d.shape(), twin.shape()
	for i, other := range others {
		if i == len(mine) {
			return append(found, problem{d.path, 1, fmt.Sprintf("%s:%d has no counterpart", twin.path, other.line)})
		} else if mine[i].text != other.text {
			text := fmt.Sprintf("something else than in %s:%d", twin.path, other.line)
			return append(found, problem{d.path, mine[i].line, text})
		}
	}
	if len(mine) > len(others) {
		found = append(found, problem{d.path, mine[len(others)].line, "no counterpart in " + twin.path})
	}
	return found
}
