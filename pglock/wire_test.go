package pglock

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// page is wire.md, with single spaces.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("wire.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// Other languages must find the same lock; wire.md has this example.
func TestWireFormat_OfNamesIsDescribed(t *testing.T) {
	text := page(t)
	has := func(part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("wire.md does not have %q", part)
		}
	}
	number := hash("interlock", driver.Key{Kind: driver.KindMutex, Name: "stock:42"}, 0)
	has(fmt.Sprintf("The mutex `stock:42` in the table `interlock` has the number %d", number))
	var all []string
	for _, kind := range kinds {
		all = append(all, "`"+string(kind)+"`")
	}
	has("`kind` is " + strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1])
	has("the channel `interlock_` followed by the first 8 bytes of SHA-256(table) in hexadecimal")
	if channel := channelOf("interlock"); channel != "interlock_6e749f0d99c77cfc" {
		t.Errorf("breaks are announced on %s", channel)
	}
}

// created are the columns of a table as the driver makes it, by name in order, with their types and the primary key.
type created struct {
	unlogged bool
	names    []string
	types    []string
	primary  []string
}

func tableOf(t *testing.T, text string) (name string, c created) {
	t.Helper()
	head := regexp.MustCompile(`^CREATE (UNLOGGED )?TABLE IF NOT EXISTS \{T\}(\w*) \(`).FindStringSubmatch(text)
	if head == nil {
		t.Fatalf("%q makes no table", text)
	}
	c.unlogged = head[1] != ""
	for line := range strings.Lines(text[len(head[0]):]) {
		words := strings.Fields(strings.TrimRight(strings.TrimSpace(line), ","))
		switch {
		case len(words) == 0 || words[0] == ")":
		case words[0] == "PRIMARY":
			c.primary = strings.Fields(strings.Trim(strings.Join(words[2:], " "), "()"))
			for i := range c.primary {
				c.primary[i] = strings.TrimRight(c.primary[i], ",")
			}
		default:
			c.names, c.types = append(c.names, words[0]), append(c.types, words[1])
			if strings.Contains(line, "PRIMARY KEY") {
				c.primary = words[:1]
			}
		}
	}
	return head[2], c
}

// described is what the page says of the table interlock, in rows, or of one of the others, in a sentence.
func described(t *testing.T, suffix string) (c created) {
	t.Helper()
	text := page(t)
	cells := regexp.MustCompile("`(\\w+)`")
	if suffix != "" {
		_, behind, found := strings.Cut(text, "`interlock"+suffix+"` (unlogged): ")
		if !found {
			t.Fatalf("wire.md does not have the table interlock%s", suffix)
		}
		columns, _, _ := strings.Cut(behind, ".")
		columns, key, later := strings.Cut(columns, "; primary key (")
		for _, found := range cells.FindAllStringSubmatch(columns, -1) {
			c.names = append(c.names, found[1])
		}
		for _, found := range cells.FindAllStringSubmatch(key, -1) {
			c.primary = append(c.primary, found[1])
		}
		if !later && strings.HasPrefix(columns, "`"+c.names[0]+"` (primary key)") {
			c.primary = []string{c.names[0]}
		}
		c.unlogged = true
		return c
	}
	_, behind, _ := strings.Cut(text, "| column | type | meaning | |---|---|---| |")
	rows, _, _ := strings.Cut(behind, " | The lock is held")
	for row := range strings.SplitSeq(rows, "| |") {
		parts := strings.Split(row, " | ")
		names, types := strings.Split(strings.TrimSpace(parts[0]), ", "), strings.Split(strings.TrimSpace(parts[1]),
			", ")
		if types[len(types)-1] == "primary key" {
			c.primary, types = names, types[:1]
		}
		for i, name := range names {
			c.names, c.types = append(c.names, name), append(c.types, types[min(i, len(types)-1)])
		}
	}
	return c
}

func TestWireFormat_OfTablesIsDescribed(t *testing.T) {
	for _, text := range createTexts {
		suffix, is := tableOf(t, text)
		says := described(t, suffix)
		if suffix != "" {
			is.types = nil // the sentence has none
			slices.Sort(is.names)
			slices.Sort(says.names)
		}
		slices.Sort(is.primary)
		slices.Sort(says.primary)
		if fmt.Sprint(is) != fmt.Sprint(says) {
			t.Errorf("the table interlock%s is\n%+v\nand wire.md says\n%+v", suffix, is, says)
		}
	}
}

func TestWireFormat_OfSessionsIsDescribed(t *testing.T) {
	text := page(t)
	d := &Driver{opts: Options{Timeout: 6 * time.Second, Slice: time.Minute}}
	set := make(map[string]string)
	for _, p := range d.settings(false) {
		set[p.name] = p.value
		if (p.since > 0) != (p.name == "transaction_timeout") || p.since > 0 && p.since != 170000 {
			t.Errorf("%s is set on servers from %d on", p.name, p.since)
		}
	}
	for says, want := range map[string]map[string]string{
		"`idle_session_timeout` and `tcp_user_timeout` are the timeout": {
			"idle_session_timeout": "6000",
			"tcp_user_timeout":     "6000",
		},
		"and the keep-alives a third of it": {"tcp_keepalives_idle": "2"},
		"`statement_timeout` is 0, `transaction_timeout` too (PostgreSQL 17 and later), " +
			"the isolation is READ COMMITTED": {
			"statement_timeout": "0", "transaction_timeout": "0", "default_transaction_isolation": "read committed",
		},
	} {
		if !strings.Contains(text, says) {
			t.Errorf("wire.md does not have %q", says)
		}
		for name, value := range want {
			if set[name] != value {
				t.Errorf("%s is %q, and wire.md says: %s", name, set[name], says)
			}
		}
	}
}
