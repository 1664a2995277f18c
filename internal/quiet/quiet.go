// Package quiet keeps tests and experiments readable. It is imported for its side effect, by test kits and by programs
// that break locks on purpose:
//
//	import _ "github.com/interlock-go/interlock/internal/quiet"
//
// Clients without a Logger tell slog.Default() of every loss and of every renewal that fails, which is what such
// programs are full of. A test that wants to see them gives a Logger, or sets a default of its own.
package quiet

import "log/slog"

// Not SetDefault: that would take the output of package log too.
func init() { slog.SetLogLoggerLevel(slog.LevelError + 1) }
