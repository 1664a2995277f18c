package main

import "fmt"

// checkTwins reports where two documents that say the same in two languages have come apart: another number or level of
// headings, other code, another number of table rows. Both may be missing, one may not.
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
	found := twinHeadings(a, b)
	found = append(found, twinBlocks(a, b)...)
	if len(a.rows) != len(b.rows) {
		found = append(found,
			problem{two, 1, fmt.Sprintf("%d table rows, but %s has %d", len(b.rows), one, len(a.rows))})
	}
	return found
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

// twinBlocks reports the first code block of b that does not match.
func twinBlocks(a, b *doc) []problem {
	for i := range min(len(a.blocks), len(b.blocks)) {
		if x, y := a.blocks[i], b.blocks[i]; x.code != y.code || x.lang != y.lang {
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
