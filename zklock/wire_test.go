package zklock

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// page is wire.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("wire.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// wireTable returns the rows of the table whose first column has that title, without the title.
func wireTable(t *testing.T, title string) (rows [][]string) {
	t.Helper()
	_, behind, found := strings.Cut(page(t), "| "+title+" |")
	if !found {
		t.Fatalf("wire.md has no table of %q", title)
	}
	for i, line := range strings.Split(behind, "\n") {
		if i < 2 { // the rest of the title, and the ruler
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		rows = append(rows, cells)
	}
	return rows
}

func TestWireFormat_OfPathsIsDescribed(t *testing.T) {
	where := tree{"ROOT"}
	key := driver.Key{Kind: "KIND", Name: "NAME"}
	want := []string{
		where.kind(key.Kind), where.lock(key), where.lock(key) + "/MODEWORD-NUMBER",
		markOf(where.lock(key) + "/REQUEST"), where.sessions(),
		where.sessions() + "/ID.N",
	}
	var got []string
	for _, row := range wireTable(t, "path") {
		got = append(got, strings.ReplaceAll(row[0], " ", ""))
	}
	if !slices.Equal(got, want) {
		t.Errorf("wire.md has the paths %q, want %q", got, want)
	}
	var all []string
	for _, kind := range kinds {
		all = append(all, "`"+string(kind)+"`")
	}
	if list := strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]; !strings.Contains(page(t), list) {
		t.Errorf("wire.md does not have the kinds %s", list)
	}
	for _, row := range wireTable(t, "lock") {
		if got := encode(row[0]); got != row[1] {
			t.Errorf("%q is written as %q, wire.md has %q", row[0], got, row[1])
		}
	}
}

func TestWireFormat_OfRequestsIsDescribed(t *testing.T) {
	text := strings.Join(strings.Fields(page(t)), " ")
	has := func(part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("wire.md does not have %q", part)
		}
	}
	has(fmt.Sprintf("`MODE` is `%s` for exclusive, `%s` for shared, `%s` for upgradeable",
		letter(driver.Exclusive), letter(driver.Shared), letter(driver.Upgradeable)))
	d := &Driver{process: "process"}
	name := d.newName(driver.Shared)
	if p, ours := parseQueuePlace(name + "0000000042"); !ours || p.mode != driver.Shared || p.seq != 42 {
		t.Errorf("a request is called %q, and that is read as %+v", name, p)
	}
	var fields map[string]any
	r := &driver.Request{Client: "c", Owner: "o", Label: "l", Tokens: 1000, Retains: true}
	if err := json.Unmarshal(noteOf(r), &fields); err != nil || len(fields) != reflect.TypeFor[note]().NumField() {
		t.Errorf("the data are %v, %v", fields, err)
	}
	for field := range fields {
		has("`" + field + "`")
	}
	if fields["tokens"] != float64(passes) {
		t.Errorf("it gets %v tokens", fields["tokens"])
	}
	has(fmt.Sprintf("is how many tokens it gets, 1 to %d", passes))
	has(fmt.Sprintf("its `czxid` × %d", passes))
	if n := parseNote([]byte("not JSON")); n != (note{Tokens: 1}) {
		t.Errorf("data that cannot be read are %+v", n)
	}
	has("cannot be read counts as `{\"tokens\":1}`")
	has("A `czxid` of more than 2^57 - 2 is refused")
	if lastZxid != 1<<57-2 || (lastZxid+1)*passes > math.MaxInt64 {
		t.Errorf("the last transaction that makes a token is %d", int64(lastZxid))
	}
	has("A request whose number is 2^31 - 2^20 - 1 or more")
	if spent != 1<<31-1<<20-1 {
		t.Errorf("numbers are spent from %d", spent)
	}
}
