package main

import (
	"testing"

	"github.com/spf13/cobra"
)

// What a shell evaluates must not be empty at failure, however the flag is spelled.
func TestEvaluates_KnowsEachSpellingOfTheFlag(t *testing.T) {
	t.Parallel()
	acquire := &cobra.Command{Use: "acquire"}
	for arg, want := range map[string]bool{
		"--export": true, "--export=true": true, "--export=1": true, "--export=T": true, "--export=TRUE": true,
		"--export=false": false, "--export=0": false, "--exported": false, "export": false,
	} {
		if got := evaluates(acquire, []string{"name", arg}); got != want {
			t.Errorf("%s: %v", arg, got)
		}
	}
	if evaluates(&cobra.Command{Use: "run"}, []string{"--export"}) {
		t.Error("another command prints what a shell evaluates")
	}
}
