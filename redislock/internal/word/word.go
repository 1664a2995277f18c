// Package word knows what can be a word of the texts that the scripts of redislock keep and send. Lua splits these at
// whatever is white space for C, which is more than spaces and line ends: a prefix with a vertical tab in it once made
// holds that no renewal found.
package word

import "strings"

// Is reports whether s is one word: not empty, and without white space and control characters.
func Is(s string) bool { return s != "" && !strings.ContainsFunc(s, splits) }

// splits reports whether r is white space for Lua, or a control character, of which no text needs one.
func splits(r rune) bool { return r <= ' ' || r == 0x7f }
