// The manual page, made of the help texts. Packages install what "interlock man" prints. cobra/doc was refused: it
// brings a Markdown parser and YAML into the light build, writes thirty pages, and dates them (docs/rationale.md,
// Packages).

package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// manCommand is hidden: packages install what it prints, and whoever has built interlock alone reads it by "interlock
// man | man -l -".
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man",
		Short:  "Print the manual page",
		Long:   "Print the manual page in roff. To read it:\n\n  interlock man | man -l -",
		Args:   noArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(a.stdout, manPage(cmd.Root()))
			return err
		},
	}
}

// manPage is interlock(1). It has neither a date nor a version, so it changes only when the help texts do, and packages
// for all processors have the same one. There is one page for all commands, so a reader searches one place.
func manPage(root *cobra.Command) string {
	var p roff
	p.line(`.TH INTERLOCK 1 "" "interlock" "User Commands"`)
	p.section("NAME")
	p.paragraph("interlock - " + strings.ToLower(root.Short[:1]) + root.Short[1:])
	p.section("SYNOPSIS")
	p.verbatim("interlock COMMAND [flags] [argument...]")
	p.section("DESCRIPTION")
	p.text(root.Long)
	p.section("COMMANDS")
	// Topics come after the flags, since they are about all commands.
	var topics []*cobra.Command
	for _, cmd := range root.Commands() { // sorted by name
		switch {
		case cmd.IsAdditionalHelpTopicCommand():
			topics = append(topics, cmd)
		case cmd.IsAvailableCommand():
			p.command(cmd)
		}
	}
	p.section("FLAGS OF ALL COMMANDS")
	p.verbatim(root.PersistentFlags().FlagUsagesWrapped(manWidth))
	for _, topic := range topics {
		p.section(strings.ToUpper(strings.ReplaceAll(topic.Name(), "-", " ")))
		p.text(topic.Long)
	}
	// flock(1) for what it replaces on one machine, systemd.timer(5) for what starts jobs on many.
	p.section("SEE ALSO")
	p.text("flock(1), systemd.timer(5), https://github.com/interlock-go/interlock")
	return p.String()
}

// manWidth is how long a line may be that man does not wrap: 80 columns less man's indent.
const manWidth = 72

// roff is text for man(7).
//
// It knows what these pages need: sections, paragraphs, and blocks that stay as they are.
type roff struct{ strings.Builder }

func (p *roff) line(s string) { p.WriteString(s + "\n") }

func (p *roff) section(title string) { p.line(".SH " + title) }

// command writes what help says about a command. Quotes in the line of .SS would end its argument.
func (p *roff) command(cmd *cobra.Command) {
	p.line(`.SS "` + escapeRoff(strings.ReplaceAll(cmd.UseLine(), `"`, `'`)) + `"`)
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	p.text(strings.Replace(long, exitCodesText, "See EXIT CODES.\n", 1)) // the page has them once
	if cmd.HasExample() {
		p.verbatim(cmd.Example)
	}
	if cmd.HasAvailableLocalFlags() {
		p.paragraph("Flags:")
		p.verbatim(cmd.LocalNonPersistentFlags().FlagUsagesWrapped(manWidth))
	}
}

// text writes a help text. Blocks with indented lines are examples and tables, so their lines stay as they are; others
// are paragraphs, which man wraps. Help texts are written for a terminal of any width, so nothing else marks what may
// be wrapped.
func (p *roff) text(s string) {
	for block := range strings.SplitSeq(strings.Trim(s, "\n"), "\n\n") {
		if strings.HasPrefix(block, " ") || strings.Contains(block, "\n ") {
			p.verbatim(block)
		} else {
			p.paragraph(block)
		}
	}
}

// paragraph is for what man may wrap.
func (p *roff) paragraph(s string) {
	p.line(".PP")
	p.escaped(s)
}

// verbatim is for what has columns: .nf keeps lines as they are.
func (p *roff) verbatim(s string) {
	p.line(".PP\n.nf")
	p.escaped(s)
	p.line(".fi")
}

// escaped writes lines of which none is a request of roff: those begin with a dot or an apostrophe.
func (p *roff) escaped(s string) {
	for line := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			p.WriteString(`\&`)
		}
		p.line(escapeRoff(line))
	}
}

// escapeRoff keeps what roff would print otherwise: backslashes, hyphens that are part of a flag, and ASCII quotes. So
// what is copied from the page works in a shell.
var escapeRoff = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`).Replace
