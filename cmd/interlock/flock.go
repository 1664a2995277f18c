// Help for those who know flock(1): its flags that run does not have. Cobra calls flagError for each flag that a
// command does not know. docs/flock.md is the whole table. Only flags that would fail are here; those with the same
// meaning have the same letter.

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// flockWords are flags of flock(1) that run does not have, as the text of pflag's error has them, and what to do
// instead.
var flockWords = map[string]string{
	"'u' in ":   closesIt,
	"--unlock":  closesIt,
	"'F' in ":   staysBeside,
	"--no-fork": staysBeside,
	"'e' in ":   "a lock is exclusive by itself; beside readers it is -x",
}

const (
	// Both are said of two flags each: the short and the long form.
	closesIt    = "a lock on a descriptor ends when the shell closes it: exec 9>&-"
	staysBeside = "run stays beside its command, to forward signals and to give the lock back"
)

// flagError is the error of an unknown flag, with what to do instead if it is one of flock(1). The text of pflag's
// error is searched, which has a letter and a name as flockWords have them. Should pflag change its words, only the
// hint is gone; testdata/script/flock.txtar would notice.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.Name() == "run" {
		for word, instead := range flockWords {
			if strings.Contains(err.Error(), "flag: "+word) {
				return usage("%v: %s", err, instead)
			}
		}
	}
	return usage("%v", err)
}
