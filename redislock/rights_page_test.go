package redislock

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Operators copy the lines from the page. What the tests have tried, right by right, are those of the documentation.
func TestRights_OnThePageOfSettings_AreThoseOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/settings.md")
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat("../go.work"); err != nil {
			t.Skip("this module is not in its repository, which has the page")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^//\s+(ACL SETUSER .*)$`).FindAllSubmatch(doc, -1)
	if len(lines) < 5 {
		t.Fatalf("doc.go has %d lines with rights, want 5 or more", len(lines))
	}
	for _, line := range lines {
		if !strings.Contains(string(page), "\n  "+string(line[1])+"\n") {
			t.Errorf("docs/settings.md does not have the line %s", line[1])
		}
	}
}
