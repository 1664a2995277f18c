package address

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestWithPorts_TakesWhatPeopleWrite_AndSaysWhatIsWrong(t *testing.T) {
	for host, want := range map[string]string{
		"a": "a:1", "a:7": "a:7", "::1": "", "[::1]": "[::1]:1", "[::1]:7": "[::1]:7", "[]": "", ":7": "", "a:0": "",
		"a:65536": "", "a:b": "",
		"a:7:8": "", "10.0.0.1": "10.0.0.1:1",
	} {
		got, err := WithPorts("word", []string{host}, "1")
		switch {
		case want == "" && (err == nil || !strings.HasPrefix(err.Error(), "word: ")):
			t.Errorf("%s: got %v, %v", host, got, err)
		case want != "" && (err != nil || got[0] != want):
			t.Errorf("%s: got %v, %v, want %s", host, got, err, want)
		}
	}
}

func TestCheck_OfARestOfAPassword_SaysWhereItIs_AndDoesNotShowIt(t *testing.T) {
	for raw, says := range map[string]string{
		"x://user:se/cret@host":       "in the path",
		"x://user:se?cret@host":       "in the query",
		"x://user:pw@host?nothing=a":  "unknown query key",
		"x://host/path?nothing=a":     "unknown query key",
		"x://user:pw@host?nothing=@a": "unknown query key",
		"x://user:pw@host/path":       "",
	} {
		u, err := driver.ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		if err = CheckPath("word", u); err == nil {
			err = CheckQuery("word", u, u.Params())
		}
		switch {
		case says == "" && err == nil:
		case err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "cret"):
			t.Errorf("%s: got %v, want %q", raw, err, says)
		}
	}
}

func TestEncryption_WithFilesThatAreNot_SaysWhich(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, e := range map[string]Encryption{
		"the certificate authority's file": {CA: empty + "-not"},
		"has no certificate in PEM form":   {CA: empty},
		"cert and key go together":         {Cert: empty},
		"the client's certificate":         {Cert: empty, Key: empty},
	} {
		if _, err := e.Config("word", true, "tls=true"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v, want %q", e, err, says)
		}
		if _, err := e.Config("word", false, "tls=true"); err == nil ||
			!strings.Contains(err.Error(), "write tls=true") {
			t.Errorf("%+v of a plain connection: %v", e, err)
		}
	}
	if c, err := (Encryption{}).Config("word", false, ""); c != nil || err != nil {
		t.Errorf("a plain connection: %v, %v", c, err)
	}
	if c, err := (Encryption{}).Config("word", true, ""); c == nil || err != nil {
		t.Errorf("an encrypted one: %v, %v", c, err)
	}
}
