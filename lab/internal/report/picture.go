package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// The measures of a picture, in pixels.
const (
	column = 30 // of one step
	row    = 30 // of an actor or a server
	bar    = 18 // the height of a bar
	left   = 96 // where the first column begins
	head   = 28 // where the first row begins
	most   = 12 // the longest text that fits beside a row's begin
)

// picture is one act: a row for each who may believe to hold the lock and for each server, a column for each step.
type picture struct {
	Width, Height int
	Rows          []pictureRow
	Steps         []pictureStep
	Clashes       []span // of steps in which two believed to hold the lock
}

// pictureRow is one row.
type pictureRow struct {
	Name   string
	Y      int // of the bars
	Text   int // of the base line of texts
	Line   int // above the row
	Server bool
	Bars   []span
}

// span is a bar over some steps.
type span struct {
	X, Width int
	Class    string // holds, still, dead or server
	Label    string // on a server's bar: who has the lock
}

// LabelX is where a bar's label begins.
func (s span) LabelX() int { return s.X + 4 }

// pictureStep is one column.
type pictureStep struct {
	Number, X, Middle int
	Class             string // the step's kind
	At                string // since the experiment began
	EN, ZH            string
}

// draw makes the picture of an act.
func draw(a *story.Act) *picture {
	p := &picture{Width: left + column*len(a.Steps) + 8, Height: head + row*(len(a.Cast)+len(a.Keys)) + 8}
	for i := range a.Steps {
		s := &a.Steps[i]
		p.Steps = append(p.Steps, pictureStep{
			Number: i + 1, X: x(i), Middle: x(i) + column/2, Class: string(s.Kind), At: since(s.At),
			EN: named(s).In(story.EN), ZH: named(s).In(story.ZH),
		})
	}
	for _, name := range a.Cast {
		p.add(name, false, runs(a.Steps, func(s *story.Step) (string, string) { return string(s.States[name]), "" }))
	}
	for i, server := range a.Keys {
		p.add(server, true, runs(a.Steps, func(s *story.Step) (string, string) {
			if i >= len(s.Held) || s.Held[i] == "" { // it was not asked yet, or nobody has the lock
				return "", ""
			}
			return "server", shorten(s.Held[i])
		}))
	}
	p.Clashes = runs(a.Steps, func(s *story.Step) (string, string) {
		if len(s.Believers()) > 1 {
			return "clash", ""
		}
		return "", ""
	})
	return p
}

// add appends a row.
func (p *picture) add(name string, server bool, bars []span) {
	y := head + row*len(p.Rows) + (row-bar)/2
	p.Rows = append(p.Rows,
		pictureRow{Name: name, Y: y, Text: y + bar - 5, Line: head + row*len(p.Rows), Server: server, Bars: bars})
}

// runs returns a bar for each run of steps that have the same class and label; an empty class has none.
func runs(steps []story.Step, of func(*story.Step) (class, label string)) []span {
	var all []span
	last := span{}
	for i := range steps {
		class, label := of(&steps[i])
		if class == last.Class && label == last.Label && class != "" {
			all[len(all)-1].Width += column
			continue
		}
		last = span{X: x(i), Width: column, Class: class, Label: label}
		if class != "" {
			all = append(all, last)
		}
	}
	return slices.Clip(all)
}

func x(step int) int { return left + column*step }

// since is a time as the page shows it.
func since(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// named is a step's text with who did it.
func named(s *story.Step) story.Text {
	if s.Who == "" {
		return s.Text
	}
	return story.Join(story.Same(s.Who+": "), s.Text)
}

// shorten cuts a value that is too long for a bar.
func shorten(s string) string {
	if len(s) > most {
		return s[:most-1] + "…"
	}
	return s
}
