// What is printed: errors for people and programs, and results as JSON. The app's run comes here with the error of a
// command; exit.go judges it. Results go to stdout and words to stderr, so a pipe gets results alone. An error about a
// lock that somebody holds has the same words everywhere: in the messages of a wait, in all commands, and in -o json.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock"
	"github.com/spf13/cobra"
)

// schemaVersion is in every JSON object that the command prints. It grows when a field changes its meaning.
const schemaVersion = 1

// format is the value of -o. Its Set refuses other words, so a mistyped format is wrong use.
type format string

const (
	text   format = "text"
	asJSON format = "json"
)

// String returns the format. It, Set and Type make format a flag.
func (f *format) String() string { return string(*f) }

// Set accepts the formats that exist.
func (f *format) Set(s string) error {
	switch format(s) {
	case text, asJSON:
		*f = format(s)
		return nil
	}
	return errors.New("must be text or json")
}

// Type names the value in help texts.
func (f *format) Type() string { return "FORMAT" }

// errorObject is an error for programs to read, one line on stderr.
//
// It goes to stderr, so stdout has a result or nothing.
type errorObject struct {
	SchemaVersion int    `json:"schemaVersion"`
	Code          string `json:"code"`
	Message       string `json:"message"`
	// Retryable is for programs that would otherwise keep a list of codes.
	Retryable bool `json:"retryable"`
}

// finish prints err, if there is something to print, and returns the exit code. The usage line follows wrong use alone:
// after any other error it would hide the cause.
//
// With JSON there is no usage line: a program reads one object.
func (a *app) finish(cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	o := judge(err)
	var exit *exitError
	if errors.As(err, &exit) && exit.err == nil {
		return o.exit
	}
	a.tellError(err)
	if a.output == asJSON {
		return o.exit
	}
	var wrong *usageError
	if errors.As(err, &wrong) && cmd != nil {
		fmt.Fprintf(a.stderr, "usage: %s\nSee %q for more.\n", cmd.UseLine(), cmd.CommandPath()+" --help")
	}
	return o.exit
}

// tellError writes err to stderr in the format that was asked for. top and watch come here too, with errors that do not
// end them.
func (a *app) tellError(err error) {
	if a.output == text {
		a.say("%s", message(err))
		return
	}
	o := judge(err)
	// Strings and a bool: encoding cannot fail.
	line, _ := jsonLine(errorObject{schemaVersion, o.word, message(err), o.retryable})
	_, _ = a.stderr.Write(line) // there is nobody else to tell
}

// message is err's text on one line, without the library's own prefix, which the command adds anyway, and with times as
// people read them. Joined errors have a line each, which become parts with semicolons between.
func message(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(describe(err), "interlock: "), "\n", "; ")
}

// printJSON writes v as one line on stdout. It returns the error of the write: a full disk or a closed pipe must not
// look like success. HTML escapes are off: "<" in a label is "<" for jq too.
func (a *app) printJSON(v any) error {
	line, err := jsonLine(v)
	if err == nil {
		_, err = a.stdout.Write(line)
	}
	return err
}

// jsonLine encodes v as one line. What a terminal obeys or what turns the order of a text is escaped: names and labels
// are anybody's, and a terminal shows what jq and cat print.
func jsonLine(v any) ([]byte, error) {
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	var line []byte
	for _, r := range plain.String() { // the encoder writes valid UTF-8
		// These are in strings alone, and the encoder has escaped what is below a space.
		if r >= 0x7f && r <= 0xffff && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			line = fmt.Appendf(line, "\\u%04x", r)
			continue
		}
		line = utf8.AppendRune(line, r)
	}
	return line, nil
}

// describe says an error in words. Errors that name a holder get ages and remaining times beside the instants, because
// a reader wants those.
//
// The library's errors have instants, which stay true in a log. An age is true only at the moment when it is printed.
func describe(err error) string {
	var held *interlock.HeldError
	if errors.As(err, &held) {
		return prefixOf(err) + describeHeld(held, time.Now())
	}
	return err.Error()
}

// waitedError is the error of a wait that has met a holder until its end. held is a *HeldError, or wraps one.
type waitedError struct {
	held   error
	waited time.Duration
}

// Error says how long the wait was, and who holds the lock.
func (e *waitedError) Error() string { return e.prefix() + e.held.Error() }

// Unwrap returns the HeldError.
func (e *waitedError) Unwrap() error { return e.held }

// prefix is what stands before the text of the HeldError.
func (e *waitedError) prefix() string { return fmt.Sprintf("gave up after %v: ", e.waited) }

// prefixOf is the prefix of a waitedError, or nothing for others.
func prefixOf(err error) string {
	var waited *waitedError
	if errors.As(err, &waited) {
		return waited.prefix()
	}
	return ""
}

// describeHeld names the lock, its holder, since when, the token and the rest of the lease, as far as the engine tells
// them. A label is left out: it may be long, and get shows it.
func describeHeld(h *interlock.HeldError, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is held", h.Name)
	// What the engine does not tell is left out.
	if h.Client != "" {
		fmt.Fprintf(&b, " by %s", printable(h.Client))
	}
	if h.Owner != "" {
		fmt.Fprintf(&b, " (owner %s)", printable(h.Owner))
	}
	if !h.Since.IsZero() {
		fmt.Fprintf(&b, " since %s (%s ago)", clock(h.Since, now), short(now.Sub(h.Since)))
	}
	// The token is what break --token takes.
	if h.Token != 0 {
		fmt.Fprintf(&b, ", token %d", h.Token)
	}
	// "unless renewed": the end of the lease is not the end of the wait.
	if !h.Until.IsZero() {
		fmt.Fprintf(&b, "; lease ends in %s unless renewed", short(h.Until.Sub(now)))
	}
	return b.String()
}

// clock shows the time of day, with the date if that is not today's.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	// Local time without a zone, because the reader sits at this machine; the JSON of ls and get has the zone too.
	return t.Format(time.DateTime)
}

// short rounds a duration to what a reader can use. The engine's clock may differ from ours, so a negative one is shown
// as zero. Nobody needs the last digits of 1m3.482917s.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
