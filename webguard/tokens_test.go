package webguard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/webguard"
)

const (
	annsToken = "correct horse battery staple"
	bobsToken = "0123456789abcdef"
)

func TestReadTokens_TakesOnlyAFileOfItsOwner(t *testing.T) {
	dir := t.TempDir()
	write := func(content string, mode os.FileMode) string {
		path := filepath.Join(dir, "tokens")
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := webguard.ReadTokens(write("# who may in\n\nann: "+annsToken+"\r\n bob:"+bobsToken+":x\n", 0o600))
	if err != nil || len(got) != 2 || got[0] != (webguard.Token{"ann", annsToken}) || got[1].Secret != bobsToken+":x" {
		t.Errorf("%v, %v", got, err)
	}
	for content, says := range map[string]string{
		"": "no token", "# nothing\n": "no token", "ann\n": "line 1 is not name:token",
		"ann:short\n":   "shorter than 16",
		":" + bobsToken: "no name", "a:" + annsToken + "\na:" + bobsToken: "occurs twice",
		"a:" + annsToken + "\nb:" + annsToken: "the token of another",
	} {
		if _, err := webguard.ReadTokens(write(content, 0o600)); err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), bobsToken) {
			t.Errorf("%q: got %v, want %s", content, err, says)
		}
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o660, 0o604, 0o602} {
		_, err := webguard.ReadTokens(write("ann:"+annsToken, mode))
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := webguard.ReadTokens(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there")
	}
}
