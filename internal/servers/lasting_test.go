package servers

import (
	"os"
	"slices"
	"testing"
)

func TestShare_StartsOnce_AndEndsWhenAllTestsHave(t *testing.T) {
	var l Lasting
	var done []string
	var dir string
	share := Share(&l, func(t testing.TB) int {
		dir = t.TempDir()
		t.Cleanup(func() { done = append(done, "first") })
		t.Cleanup(func() { done = append(done, "second") })
		return len(done) + 42
	})
	for _, name := range []string{"one", "another"} {
		t.Run(name, func(t *testing.T) {
			if got := share(t); got != 42 {
				t.Errorf("got %d", got)
			}
		})
	}
	if _, err := os.Stat(dir); err != nil || len(done) != 0 {
		t.Errorf("ended with the first test: %v, %v", done, err)
	}
	l.end()
	if !slices.Equal(done, []string{"second", "first"}) {
		t.Errorf("ended %v", done)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestShare_ThatCouldNotStart_IsTriedAgain(t *testing.T) {
	var l Lasting
	tries := 0
	share := Share(&l, func(t testing.TB) int {
		if tries++; tries == 1 {
			t.SkipNow()
		}
		return tries
	})
	t.Run("which is skipped", func(t *testing.T) { share(t) })
	if got := share(t); got != 2 {
		t.Errorf("got %d", got)
	}
}
