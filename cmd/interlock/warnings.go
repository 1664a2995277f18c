// What engines and the client log, as lines on stderr. engine.go gives them these loggers; app.go's say writes the
// lines.

package main

import (
	"context"
	"log/slog"
	"strings"
)

// warnings is a handler for what engines and the client log: what a start-up check finds, a renewal that failed, a
// session that is lost. What the command says by itself is left out.
//
// They look like the command's own lines, because a person reads them, at a terminal or in a mail of cron.
type warnings struct {
	app   *app
	below slog.Level // the first level that is left out
	attrs []slog.Attr
}

// engineWarnings also has errors: those of checks that would refuse the engine if the URL said so.
func (a *app) engineWarnings() *slog.Logger {
	return slog.New(&warnings{app: a, below: slog.LevelError + 1})
}

// clientWarnings leaves out losses of locks, which are errors: every command that holds one says what they mean for it.
func (a *app) clientWarnings() *slog.Logger {
	return slog.New(&warnings{app: a, below: slog.LevelError})
}

// Enabled accepts warnings, and errors where they are wanted.
//
// Information, such as a new connection, would be noise in a command that runs for a second.
func (w *warnings) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && level < w.below
}

// Handle says a record on one line: its message, the error, and the rest in parentheses.
//
// The advice stands last. The page that explains it is left to doctor.
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	var why, advice, check string
	var rest []string
	add := func(attr slog.Attr) bool {
		switch value := attr.Value.String(); attr.Key {
		case "err", "error":
			why = ": " + value
		case "advice":
			advice = value
		case "check":
			check = value // the message begins with it
		case "page": // doctor says it
		default:
			rest = append(rest, attr.Key+" "+printable(value))
		}
		return true
	}
	for _, attr := range w.attrs {
		add(attr)
	}
	r.Attrs(add)
	// A finding that would refuse the engine is told always: the lock may exclude nobody.
	if check != "" && !w.app.tellsChecks && r.Level < slog.LevelError {
		return nil
	}
	text := strings.TrimPrefix(r.Message, "interlock: ") + why
	if advice != "" {
		rest = append(rest, advice)
	}
	if check != "" {
		rest = append(rest, "check=none in the URL skips this check")
	}
	if len(rest) > 0 {
		text += " (" + strings.Join(rest, ", ") + ")"
	}
	w.app.say("warning: %s", strings.ReplaceAll(text, "\n", "; "))
	return nil
}

// WithAttrs keeps attributes for all records. The slice is copied, because two loggers that are made of one would write
// into the same array.
func (w *warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *w
	more.attrs = append(append([]slog.Attr{}, w.attrs...), attrs...)
	return &more
}

// WithGroup does nothing: neither engines nor the client have groups.
func (w *warnings) WithGroup(string) slog.Handler { return w }
