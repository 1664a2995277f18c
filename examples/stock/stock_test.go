package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/host"
	"github.com/interlock-go/interlock/examples/internal/part"
)

func TestMain(m *testing.M) {
	part.Play(map[string]func(context.Context, *part.Stage) error{sellerPart: sell})
	os.Exit(m.Run())
}

// small is enough for every way to show itself, since the wrong ones are made to go wrong.
var small = size{processes: 2, goroutines: 2, stock: 12}

func TestStock_RightWaysSellWhatIsThere_WrongWaysOversell(t *testing.T) {
	for _, server := range []string{host.MariaDB, host.Postgres, host.Redis} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			p := place{Server: server, Addr: host.Addr(t, server)}
			var out bytes.Buffer
			table := newTable(&out, small)
			err := table.fill(t.Context(), p, small)
			table.flush()
			if err != nil || !table.fine() {
				t.Errorf("%v\n%s", err, &out)
			}
			if n := strings.Count(out.String(), server); n != len(ways)+2 {
				t.Errorf("%d lines about %s, not one for each way and two about stocktaking:\n%s", n, server, &out)
			}
		})
	}
}

// TestTrade_OfAWrongWayThatIsTakenForRight_IsNotAsExpected is why a right way that went wrong would be noticed.
func TestTrade_OfAWrongWayThatIsTakenForRight_IsNotAsExpected(t *testing.T) {
	p := place{Server: host.Redis, Addr: host.Addr(t, host.Redis)}
	o, err := trade(t.Context(), p, way{name: "no lock", sound: true}, size{processes: 2, goroutines: 1, stock: 1})
	if err != nil {
		t.Fatal(err)
	}
	if o.sold != 2 || o.asExpected() {
		t.Errorf("two sellers that both saw the last item sold %d (as expected: %t); want 2, and not as expected",
			o.sold, o.asExpected())
	}
	var out bytes.Buffer
	table := newTable(&out, small)
	table.add(o)
	table.flush()
	if table.fine() || !strings.Contains(out.String(), "WRONG: 2 sold and 0 left of 1") {
		t.Errorf("the table takes it for fine:\n%s", &out)
	}
}

func TestTrade_WithASellerThatFails_EndsWithAnError(t *testing.T) {
	p := place{Server: host.Redis, Addr: host.Addr(t, host.Redis)}
	if _, err := trade(t.Context(), p, way{name: "as nobody does"}, small); err == nil {
		t.Error("no error, although no seller has sold anything")
	}
}

func TestRun_RefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{{"-processes", "1"}, {"-servers", "oracle"}, {"-stock", "many"}, {"everything"}} {
		var out, words bytes.Buffer
		if code := run(t.Context(), args, &out, &words); code != command.Usage || words.Len() == 0 {
			t.Errorf("%q: exit code %d, words %q; want %d and what is wrong", args, code, &words, command.Usage)
		}
	}
}
