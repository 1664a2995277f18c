// Package recipetest runs the programs of the cookbook in tests.
package recipetest

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/examples/internal/recipe"
)

// Run runs a recipe in memory and, on Linux, on files, where each kind of lock exists. Its output must have each
// text that often. What the recipe promises it checks itself: it fails if that does not hold.
func Run(t *testing.T, run recipe.Run, want map[string]int) {
	t.Helper()
	urls := map[string]string{"Memory": "mem://" + t.Name()}
	if runtime.GOOS == "linux" {
		urls["Files"] = "file://" + t.TempDir()
	}
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out bytes.Buffer
			if err := run(ctx, url, recipe.Lines(&out)); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			for text, n := range want {
				if got := strings.Count(out.String(), text); got != n {
					t.Errorf("%q is there %d times, want %d, in\n%s", text, got, n, out.String())
				}
			}
		})
	}
}
