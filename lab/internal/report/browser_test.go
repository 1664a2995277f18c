package report

import (
	"path/filepath"
	"testing"

	"github.com/interlock-go/interlock/internal/browser"
)

func TestMain(m *testing.M) { browser.Main(m) }

// openPage opens a file in a tab of its own.
func openPage(t *testing.T, file, fragment string) *browser.Tab {
	t.Helper()
	p := browser.New(t, 1200, 1000)
	p.Go("file://" + filepath.ToSlash(file) + fragment)
	p.Until("the page to play", "document.body.classList.contains('plays')")
	return p
}
