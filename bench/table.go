package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/bench/peer"
)

// table is one of a page: the scenarios whose names begin with one of some words. A row is a number of a scenario, a
// column is a peer.
type table struct {
	page   string
	name   string
	begins []string
}

func (t *table) scenarios() (mine []scenario) {
	for _, begin := range t.begins {
		mine = append(mine, choose(allScenarios(), begin)...)
	}
	return mine
}

// tablesOf are those that have a number of the rounds.
func (r rounds) tablesOf() (some []table) {
	for _, t := range tables {
		if t.markdown(r) != "" {
			some = append(some, t)
		}
	}
	return some
}

// markdown is "" if nothing of the table was measured.
func (t *table) markdown(r rounds) string {
	mine := slices.DeleteFunc(t.scenarios(), func(sc scenario) bool {
		return !slices.ContainsFunc(r, func(l line) bool { return l.scenario == sc.name })
	})
	if len(mine) == 0 {
		return ""
	}
	peers := peersOf(mine)
	heads := append(append([]string{"scenario", "number"}, peers...), "demanded of interlock: measured")
	var cells [][]string
	lost := &reasons{}
	for i := range mine {
		sc := &mine[i]
		kept := true
		for row := range sc.shows {
			demands, all := r.demands(sc, row)
			line := append([]string{sc.label(row), headOf(sc.shows[row])}, r.cells(sc, row, peers)...)
			cells = append(cells, append(line, strings.Join(demands, "; ")))
			kept = kept && all
		}
		if !kept {
			lost.add(sc)
		}
	}
	return markdown(2, heads, cells) + lost.markdown()
}

// reasons are why demands are not kept, each once.
type reasons struct {
	of    [][]string // names of scenarios
	texts []string
}

func (r *reasons) add(sc *scenario) {
	i := slices.Index(r.texts, sc.why)
	if i < 0 {
		i = len(r.texts)
		r.texts, r.of = append(r.texts, sc.why), append(r.of, nil)
	}
	r.of[i] = append(r.of[i], "`"+sc.name+"`")
}

func (r *reasons) markdown() string {
	if len(r.texts) == 0 {
		return ""
	}
	text := "\nNot kept, and why:\n"
	for i, why := range r.texts {
		text += wrapped("- " + strings.Join(r.of[i], ", ") + ": " + why)
	}
	return text
}

// peersOf are the columns, in the order in which peers are listed.
func peersOf(all []scenario) (peers []string) {
	for _, p := range peer.All() {
		if slices.ContainsFunc(all, func(sc scenario) bool { return slices.Contains(sc.peers, p.Name) }) {
			peers = append(peers, p.Name)
		}
	}
	for i := range all { // and what is no peer
		for _, p := range all[i].peers {
			if !slices.Contains(peers, p) {
				peers = append(peers, p)
			}
		}
	}
	return peers
}

// label is the name of a scenario in its first row.
func (sc *scenario) label(row int) string {
	if row > 0 {
		return ""
	}
	return "`" + sc.name + "`"
}

// cells are the numbers of a row, and in the first one also their ratios to that of the base.
func (r rounds) cells(sc *scenario, row int, peers []string) (cells []string) {
	for _, p := range peers {
		var texts []string
		for _, unit := range sc.shows[row] {
			if text := r.number(sc.name, p, unit); text != "" {
				texts = append(texts, text)
			}
		}
		switch {
		case texts == nil:
			texts = []string{"–"}
		case row == 0 && sc.base != "" && p != sc.base:
			texts[0] += " (" + r.limit(sc.name, p, sc.shows[0][0]) +
				times(r.ratio(sc.name, p, sc.base, sc.shows[0][0]).of) + ")"
		}
		cells = append(cells, strings.Join(texts, " · "))
	}
	return cells
}

// number is "" for what was not measured.
func (r rounds) number(scenario, peer, unit string) string {
	x := r.median(scenario, peer, unit)
	if math.IsNaN(x) {
		return ""
	}
	return r.limit(scenario, peer, unit) + units[unit].write(x)
}

// limit stands before a time that is only the limit.
func (r rounds) limit(scenario, peer, unit string) string {
	if r.cut(scenario, peer, unit) {
		return "> "
	}
	return ""
}

// headOf says what the numbers of a row are.
func headOf(row []string) string {
	var heads []string
	for _, unit := range row {
		heads = append(heads, units[unit].head)
	}
	return strings.Join(heads, " · ")
}

// markdown writes a table whose first columns are words.
func markdown(words int, heads []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	b.WriteString(strings.Repeat("|---", words) + strings.Repeat("|---:", len(heads)-words) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// wrapped breaks the lines of a list's entry.
func wrapped(text string) string {
	const width = 120
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		length := len([]rune(word))
		switch {
		case column == 0:
		case column+1+length > width:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String() + "\n"
}

// marks are the lines of a file between which a table stands.
type marks struct{ begin, end string }

func marksOf(name string) marks {
	return marks{"<!-- " + name + ": begin, generated -->\n", "<!-- " + name + ": end -->\n"}
}

// between returns text with what stands between the marks replaced.
func (m marks) between(text, tables string) (string, error) {
	before, rest, begins := strings.Cut(text, m.begin)
	_, after, ends := strings.Cut(rest, m.end)
	if !begins || !ends {
		return "", fmt.Errorf("the lines %q and %q are missing", strings.TrimSpace(m.begin), strings.TrimSpace(m.end))
	}
	return before + m.begin + tables + m.end + after, nil
}

// write replaces what stands between the marks of the file.
func (m marks) write(file, tables string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := m.between(string(old), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
