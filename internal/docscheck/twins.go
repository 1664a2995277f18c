package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// inChinese ends the name of the Chinese twin of a page.
const inChinese = ".zh-CN.md"

// chineseOnly are pages that have no twin, because their English is somewhere else.
var chineseOnly = map[string]bool{
	commandPage: true, // "interlock help" says the same in English, see checkCommandPage
}

// firstLines is where a page has to link to its twin, so that readers of the other language find it.
const firstLines = 10

// checkAllTwins compares README.md, and every page below docs that is there in Chinese, with its twin. A Chinese page
// that was removed is a broken link in the English one.
func checkAllTwins(docs map[string]*doc) []problem {
	found := checkTwins(docs, "README.md", "README"+inChinese)
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		page, ok := strings.CutSuffix(name, inChinese)
		if ok && strings.HasPrefix(name, "docs/") && !chineseOnly[name] {
			found = append(found, checkTwins(docs, page+".md", name)...)
		}
	}
	return found
}

// checkTwins reports where two documents that say the same in two languages have come apart: another number or level of
// headings, other code, another number of table rows, no link to the other. Both may be missing, one may not.
func checkTwins(docs map[string]*doc, one, two string) []problem {
	a, b := docs[one], docs[two]
	switch {
	case a == nil && b == nil:
		return nil
	case a == nil:
		return []problem{{two, 1, "there is no " + one}}
	case b == nil:
		return []problem{{one, 1, "there is no " + two}}
	}
	found := append(twinLink(a, b), twinLink(b, a)...)
	found = append(found, twinHeadings(a, b)...)
	found = append(found, twinBlocks(a, b)...)
	if len(a.rows) != len(b.rows) {
		found = append(found,
			problem{two, 1, fmt.Sprintf("%d table rows, but %s has %d", len(b.rows), one, len(a.rows))})
	}
	return found
}

// twinLink reports that a does not begin with a link to b.
func twinLink(a, b *doc) []problem {
	toB := func(l link) bool { return l.line <= firstLines && path.Join(path.Dir(a.path), l.target) == b.path }
	if slices.ContainsFunc(a.links, toB) {
		return nil
	}
	return []problem{{a.path, 1, fmt.Sprintf("no link to %s in the first %d lines", b.path, firstLines)}}
}

// twinHeadings reports the first heading of b that does not match: the ones after it follow from it.
func twinHeadings(a, b *doc) []problem {
	for i := range min(len(a.headings), len(b.headings)) {
		if x, y := a.headings[i], b.headings[i]; x.level != y.level {
			return []problem{{b.path, y.line, fmt.Sprintf("heading %d has level %d, but level %d in %s:%d",
				i+1, y.level, x.level, a.path, x.line)}}
		}
	}
	if len(a.headings) != len(b.headings) {
		return []problem{
			{b.path, 1, fmt.Sprintf("%d headings, but %s has %d", len(b.headings), a.path, len(a.headings))},
		}
	}
	return nil
}

// sameBlock reports whether two blocks match. What a program prints may be in the language of the page, if markers say
// which files it was cut from.
func sameBlock(a, b block) bool {
	printed := a.lang == "text" && a.source != "" && b.source != ""
	return a.lang == b.lang && (a.code == b.code || printed)
}

// twinBlocks reports the first code block of b that does not match.
func twinBlocks(a, b *doc) []problem {
	for i := range min(len(a.blocks), len(b.blocks)) {
		if x, y := a.blocks[i], b.blocks[i]; !sameBlock(x, y) {
			return []problem{{b.path, y.line, fmt.Sprintf("code block %d differs from %s:%d", i+1, a.path, x.line)}}
		}
	}
	if len(a.blocks) != len(b.blocks) {
		return []problem{
			{b.path, 1, fmt.Sprintf("%d code blocks, but %s has %d", len(b.blocks), a.path, len(a.blocks))},
		}
	}
	return nil
}
