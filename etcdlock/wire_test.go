package etcdlock

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// The page for other languages lists every field of a record, and the keys as they are.
func TestWireFormat_IsDescribed(t *testing.T) {
	text, err := os.ReadFile("wire.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(text), " / ", "/")
	has := func(part string) {
		t.Helper()
		if !strings.Contains(page, part) {
			t.Errorf("wire.md does not have %q", part)
		}
	}
	fields := reflect.TypeFor[record]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		has("`" + name + "`")
	}
	has(fmt.Sprintf("This is\nformat `%d`", format))
	has(fmt.Sprintf("create revision times %d", blockSize))
	has("`" + defaultPrefix + "`")
	n, key := names{"PREFIX "}, driver.Key{Kind: "KIND", Name: "NAME"}
	for _, name := range []string{
		n.queuePrefix(key) + "LEASE-SLOT",
		n.tomb(key, "ID"),
		strings.Replace(n.served(1), "/1", "/LEASE", 1),
		strings.Replace(n.alive(1), "/1/", "/LEASE/", 1),
		strings.Replace(strings.Replace(n.notice(1, 7), "/1/", "/LEASE/", 1), "/7", "/REVISION", 1),
		strings.Replace(strings.Replace(n.call(1, 7), "/1/", "/LEASE/", 1), "/7", "/REVISION", 1),
	} {
		if plain := strings.NewReplacer(" ", ""); !strings.Contains(plain.Replace(page), "`"+plain.Replace(name)+"`") {
			t.Errorf("wire.md does not have the key %q", name)
		}
	}
}
