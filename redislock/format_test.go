package redislock

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// wireTable returns the rows of the table in wire.md whose first column has that title, without the title.
func wireTable(t *testing.T, title string) [][]string {
	t.Helper()
	text, err := os.ReadFile("wire.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	found := false
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			if found {
				return rows[1:] // without the ruler
			}
		case found:
			rows = append(rows, cells)
		case cells[0] == title:
			found = true
		}
	}
	if !found {
		t.Fatalf("wire.md has no table of %q", title)
	}
	return rows[1:]
}

// source reads one of the package's files.
func source(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFormat_NamesTheScriptsAndTheirParts(t *testing.T) {
	written := make(map[string]string)
	scripts := regexp.MustCompile(`(\w+)Script\s+= newScript\(([^)]*)\)`)
	for _, found := range scripts.FindAllStringSubmatch(source(t, "scripts.go"), -1) {
		parts := strings.NewReplacer(`"`, "", "+", "", ",", "").Replace(found[2])
		written[found[1]] = strings.Join(strings.Fields(parts), " ")
	}
	documented := make(map[string]string)
	used := make(map[string]bool)
	for _, row := range wireTable(t, "script") {
		documented[row[0]] = row[1]
		for part := range strings.FieldsSeq(row[1]) {
			used[part+".lua"] = true
		}
	}
	if len(written) == 0 || !maps.Equal(written, documented) {
		t.Errorf("wire.md has %v, scripts.go %v", documented, written)
	}
	files, err := os.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !used[file.Name()] {
			t.Errorf("%s is in no script", file.Name())
		}
	}
}

// elements are the names and numbers of what a waiter or hold consists of, as wire.md has them.
func elements(t *testing.T) map[string]int {
	t.Helper()
	numbers := make(map[string]int)
	for _, row := range wireTable(t, "element") {
		n, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		numbers[row[1]] = n
	}
	return numbers
}

func TestFormat_NumbersTheElementsAsTheScriptsDo(t *testing.T) {
	documented := elements(t)
	written := make(map[string]int)
	assignment := regexp.MustCompile(`(?m)^local ([A-Z_, ]+) = ([0-9, ]+)$`)
	for _, file := range []string{"scripts/lock.lua", "scripts/renew.lua"} {
		for _, found := range assignment.FindAllStringSubmatch(source(t, file), -1) {
			names, numbers := strings.Split(found[1], ", "), strings.Split(found[2], ", ")
			for i, name := range names {
				n, err := strconv.Atoi(numbers[i])
				if err != nil {
					t.Fatal(err)
				}
				name = strings.TrimPrefix(name, "HOLD_")
				if before, twice := written[name]; twice && before != n {
					t.Errorf("%s is %d and %d", name, before, n)
				}
				written[name] = n
			}
		}
	}
	for name, n := range documented {
		if written[name] != n {
			t.Errorf("%s is %d in wire.md, %d in the scripts", name, n, written[name])
		}
	}
	for _, file := range []string{"acquire_fast", "release_fast"} { // which have that number, and not its name
		if text, err := scriptFiles.ReadFile("scripts/" + file + ".lua"); err != nil ||
			!strings.Contains(string(text), "450000") {
			t.Errorf("%s does not let a queue last for QUEUE_LASTS: %v", file, err)
		}
	}
	for name, n := range map[string]int{
		"HELD": 0, "CLAIMED": 1, "KEPT": 2, "QUEUE_LASTS": 450000, "PATIENCE": 2, "MOST_TOKENS": mostTokens,
	} {
		if written[name] != n {
			t.Errorf("%s is %d, wire.md says %d", name, written[name], n)
		}
	}
}

func TestFormat_IsReadByInspectionAsItIsNumbered(t *testing.T) {
	at := elements(t)
	r := make(record, len(at))
	for name, n := range at {
		r[n-1] = map[string]any{
			"MODE": "s", "WEIGHT": 3.0, "META": `{"o":"owner","c":"client","l":"label"}`, "SINCE": "1700000000000001",
			"TOKEN": "1700000000000002", "UNTIL": 1700000000003.0, "GRANTED": "1700000000000004",
			"ALIVE": 1700000000005.0,
		}[name]
	}
	want := driver.Holder{
		Owner: "owner", Client: "client", Label: "label", Token: 1700000000000002, Weight: 3, Shared: true,
		Since: time.UnixMicro(1700000000000004), Until: time.UnixMilli(1700000000003),
	}
	if got := r.holder(0); got != want {
		t.Errorf("a hold is read as %+v, want %+v", got, want)
	}
	wait := driver.Waiter{
		Owner: "owner", Client: "client", Label: "label", Weight: 3, Shared: true,
		Since: time.UnixMicro(1700000000000001),
	}
	if got := r.waiter(); got != wait {
		t.Errorf("a waiter is read as %+v, want %+v", got, wait)
	}
}

// words takes a stored text apart by the layout of that name in wire.md.
func words(t *testing.T, layout, text string) map[string]string {
	t.Helper()
	for _, row := range wireTable(t, "layout") {
		if row[0] != layout {
			continue
		}
		names := strings.Fields(row[1])
		values := strings.SplitN(text, " ", len(names))
		if len(values) != len(names) || values[0] != names[0] {
			t.Fatalf("%q is not %q", text, row[1])
		}
		of := make(map[string]string)
		for i, name := range names {
			of[name] = values[i]
		}
		return of
	}
	t.Fatalf("wire.md has no layout of a %s", layout)
	return nil
}

func TestFormat_OfWhatIsStored(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	do := func(args ...string) string {
		t.Helper()
		answer, err := s.Do(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return fmt.Sprint(answer)
	}
	same := func(got map[string]string, want map[string]string) {
		t.Helper()
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s is %q, want %q in %v", name, got[name], value, got)
			}
		}
	}
	first, second := lockRequest("first", "x"), lockRequest("second", "x")
	first.Tokens, first.Label, second.Client = 8, "with spaces", "two"
	g, err := d.Acquire(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	key, slot := d.names.lock(first.Key)
	token, last := strconv.FormatUint(g.Token, 10), strconv.FormatUint(g.Token+7, 10)
	common := map[string]string{"WAY": "P", "CLAIM": "2000", "TTL": "450000", "LEASE": "20001", "CHANNEL": d.channel}
	thin := words(t, "thin", do("GET", key))
	same(thin, common)
	same(thin, map[string]string{
		"ID": "first", "TOKEN": token, "SINCE": token, "PASS": "0", "TOKENS": "8",
		"META": `{"o":"o-first","c":"test","l":"with spaces"}`,
	})
	if floor := do("GET", d.names.floor(slot)); floor != last {
		t.Errorf("the floor is %s, want %s", floor, last)
	}

	if _, err := waiting(t.Context(), d, second); err != nil {
		t.Fatal(err)
	}
	same(map[string]string{
		"v": do("HGET", key, "v"), "l": do("HGET", key, "l"), "a": do("HGET", key, "a"), "z": do("HGET", key, "z"),
		"k": do("HGET", key, "k"), "w": do("HGET", key, "w:second"), "fields": do("HLEN", key),
	}, map[string]string{"v": plainFormat, "l": "", "a": "0", "z": "1", "k": "0", "w": "0", "fields": "8"})
	hold := words(t, "text hold", do("HGET", key, "h"))
	same(hold, common)
	same(hold,
		map[string]string{
			"ID": "first", "STATE": "0", "TOKEN": token, "TOKENS": "8", "PASS": "0", "META": thin["META"], "WANT": "8",
		})
	waiter := words(t, "text waiter", do("HGET", key, "q:0"))
	same(waiter, common)
	same(waiter, map[string]string{"ID": "second", "WANT": "1", "META": `{"o":"o-second","c":"two"}`})
	if len(hold["UNTIL"]) != 13 || len(hold["ALIVE"]) != 13 || len(waiter["ALIVE"]) != 13 ||
		len(waiter["SINCE"]) != 16 {
		t.Errorf("instants have another width: %v, %v", hold, waiter)
	}
}

// A floor ahead of the clock is common where holds are shorter than their block of tokens: the
// lock is thin all the same.
func TestFormat_OfALockWhoseFloorIsAhead(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	r := lockRequest("ahead", "x")
	r.Tokens = 8
	key, slot := d.names.lock(r.Key)
	const floor = "4000000000000000"
	if _, err := s.Do(t.Context(), "SET", d.names.floor(slot), floor); err != nil {
		t.Fatal(err)
	}
	g, err := d.Acquire(t.Context(), r)
	if err != nil || g.Token != 4000000000000001 || g.Tokens != 1 {
		t.Fatalf("got %+v, %v", g, err)
	}
	stored, err := s.Do(t.Context(), "GET", key)
	if err != nil {
		t.Fatal(err)
	}
	thin := words(t, "thin", stored.(string))
	if thin["TOKEN"] != "4000000000000001" || thin["TOKENS"] != "1" || thin["ID"] != "ahead" || thin["SINCE"] >= floor {
		t.Errorf("stored as %v", thin)
	}
	next, err := s.Do(t.Context(), "GET", d.names.floor(slot))
	if err != nil || next != "4000000000000001" {
		t.Errorf("the floor is %v, %v", next, err)
	}
}

func TestFormat_OfWhatIsPushed(t *testing.T) {
	s := servers.RedisServer(t, nil)
	d := open(t, soloOption(s.Addr()), nil)
	c, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(t.Context(), "SUBSCRIBE", d.channel); err != nil {
		t.Fatal(err)
	}
	next := func() []string {
		t.Helper()
		answer, err := c.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		parts := answer.([]any)
		return strings.Fields(fmt.Sprint(parts[len(parts)-1]))
	}
	next() // the subscription
	first, second := lockRequest("first", "x"), lockRequest("second", "x")
	if _, err := d.Acquire(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	done, err := waiting(t.Context(), d, second)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Release(t.Context(), &driver.Release{Key: first.Key, ID: first.ID}); err != nil {
		t.Fatal(err)
	}
	grant := next()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(grant) != 7 || grant[0] != "G" || grant[1] != "second" || grant[5] != "second" || grant[6] != "2000" {
		t.Errorf("a grant is pushed as %v", grant)
	}
	token, _ := strconv.ParseUint(grant[3], 10, 64)
	if err := d.Break(t.Context(), second.Key, token); err != nil {
		t.Fatal(err)
	}
	if broken := next(); len(broken) != 3 || broken[0] != "B" || broken[1] != "second" {
		t.Errorf("a break is pushed as %v", broken)
	}
	third, try := lockRequest("third", "x"), lockRequest("try", "x")
	third.Retains, try.Try = true, true
	if _, err := d.Acquire(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), try); !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	if wanted := next(); len(wanted) != 3 || wanted[0] != "W" || wanted[1] != "third" {
		t.Errorf("that another wants a lock is pushed as %v", wanted)
	}
	for _, row := range wireTable(t, "message") {
		words := strings.Fields(row[0])
		if words[0] == "G" && len(words) != len(grant) || (words[0] == "B" || words[0] == "W") && len(words) != 3 {
			t.Errorf("wire.md has the message %v", words)
		}
	}
}
