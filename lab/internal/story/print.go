package story

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// Style is how a story is printed.
type Style struct {
	Lang   Lang
	Golden bool // without what differs from run to run
	Wire   bool // with what the sound lock's clients sent
	Width  int  // lines of words are broken after it; 0 is 100
}

// words of the frame, in both languages.
var (
	soundLock = T(" (the sound lock in the same events)", "（同样的事件，换成可靠的锁）")
	asExpect  = T("shown as expected", "如预期重现")
	notExpect = T("NOT as expected", "与预期不符")
	unsaid    = "and %d more on the wire"
	unsaidZH  = "线上另有 %d 条"
)

// colon stands between a name and what is said of it.
var colon = T(": ", "：")

// marks stand before the words of a step.
var marks = map[Kind]string{Says: " ", Asks: ">", Fate: "~", Clash: "!!", Shown: "=", Missing: "??"}

// Print writes the story in words.
func (s *Story) Print(w io.Writer, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\n", s.ID, s.Title.In(style.Lang))
	b.WriteString(fold(style.say(s.About), "  ", "  ", style.width()))
	for i, a := range s.Acts {
		s.printAct(&b, i, a, style)
	}
	fmt.Fprintf(&b, "\n%s%s%s\n", s.ID, colon.In(style.Lang), s.Verdict().In(style.Lang))
	_, err := io.WriteString(w, b.String())
	return err
}

// Verdict says whether the story is as expected.
func (s *Story) Verdict() Text {
	if s.OK() {
		return asExpect
	}
	return notExpect
}

func (s *Story) printAct(b *strings.Builder, i int, a *Act, style Style) {
	fmt.Fprintf(b, "\n%s.%d  %s", s.ID, i+1, a.Title.In(style.Lang))
	if a.Sound {
		b.WriteString(soundLock.In(style.Lang))
	}
	b.WriteString("\n\n")
	wire := a.Wire
	if !style.Wire {
		wire = nil
	}
	for n, step := range a.Steps {
		at := fmt.Sprintf("%7.3f s", step.At.Seconds())
		if style.Golden {
			at = ""
		}
		head := fmt.Sprintf("%3d %s %-2s %s", n+1, at, marks[step.Kind], who(step.Who))
		b.WriteString(fold(style.say(step.Text), head, strings.Repeat(" ", columns(head)), style.width()))
		for ; len(wire) > 0 && (wire[0].At <= step.At || n == len(a.Steps)-1); wire = wire[1:] {
			b.WriteString(fold(wire[0].Line().In(style.Lang), wireHead, wireHead+"  ", style.width()))
		}
	}
	if style.Wire && a.Unsaid > 0 {
		b.WriteString(wireHead + T(unsaid, unsaidZH, a.Unsaid).In(style.Lang) + "\n")
	}
}

// wireHead stands before what went over the wire, below the step that was told when it had.
var wireHead = strings.Repeat(" ", len("  1   0.000 s ")) + "|  "

// Line is what went over the wire in one line. Only the name of the server has two languages.
func (w *Wire) Line() Text {
	arrow, answer := "→", ""
	if w.Push {
		arrow = "←"
	}
	if w.Answer != "" {
		answer = "  →  " + w.Answer
	}
	line := func(lang Lang) string {
		return w.Who + " " + arrow + " " + Server(w.To).In(lang) + ": " + w.Text + answer
	}
	return Text{EN: line(EN), ZH: line(ZH)}
}

func who(name string) string {
	if name == "" {
		return ""
	}
	return name + ": "
}

// say returns a text as the style wants it.
func (s Style) say(t Text) string {
	if s.Golden {
		return t.golden(s.Lang)
	}
	return t.In(s.Lang)
}

func (s Style) width() int {
	if s.Width == 0 {
		return 100
	}
	return s.Width
}

// fold breaks text into lines, of which the first begins with head and the others with indent. Chinese is broken
// anywhere, everything else at spaces.
func fold(text, head, indent string, width int) string {
	var b strings.Builder
	b.WriteString(head)
	column := columns(head)
	for i, word := range pieces(text) {
		if n := columns(strings.TrimRight(word, " ")); i > 0 && column+n > width {
			b.WriteString("\n" + indent)
			column = columns(indent)
		}
		b.WriteString(word)
		column += columns(word)
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// pieces splits text where a line may be broken: after spaces, and before a Chinese character.
func pieces(text string) []string {
	var all []string
	begin := 0
	for i, r := range text {
		switch {
		case i == begin:
		case r >= 0x2e80 && !strings.ContainsRune("，。；：、！？）》」”’", r), strings.HasSuffix(text[begin:i], " ") && r != ' ':
			all = append(all, text[begin:i])
			begin = i
		}
	}
	return append(all, text[begin:])
}

// columns is the width of text on a terminal, where a Chinese character takes two.
func columns(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if r >= 0x2e80 {
			n++
		}
	}
	return n
}

// Seconds is a duration in words that need no translation.
func Seconds(d time.Duration) string { return fmt.Sprintf("%g s", d.Round(time.Millisecond).Seconds()) }
