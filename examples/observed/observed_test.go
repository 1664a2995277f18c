package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/host"
	"github.com/interlock-go/interlock/examples/internal/part"
)

func TestMain(m *testing.M) {
	part.Play(parts)
	os.Exit(m.Run())
}

// printed is what a program writes. It closes seen when that contains the text.
type printed struct {
	text string
	seen chan struct{}

	mu  sync.Mutex // guards buf and seen
	buf bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := strings.Contains(p.buf.String(), p.text)
	n, err := p.buf.Write(b)
	if !before && strings.Contains(p.buf.String(), p.text) {
		close(p.seen)
	}
	return n, err
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// story is what the program must tell, in this order.
var story = []string{
	"everybody trades", "link between the clerk and Redis is cut", "ALERT InterlockRenewalsFail fires", "is mended",
	"late, and nothing is lost", "ALERT InterlockRenewalsLate fires",
	"shop 1 is stopped", "ALERT InterlockManyWait fires", "ann, who came after the stop, has the lock",
	"InterlockManyWait has resolved",
	"shop 1 goes on", "it buys nothing, because it is told", "was lost: no renewal was confirmed in time",
	"ALERT InterlockLockLost fires", "InterlockLockLost has resolved",
	"no alert fires", "trades are done", "all 500 goods and all money are there",
	"order of ann", "lock wait", "result=acquired queued=true", "lock hold", "buy",
	"The market goes on",
}

// TestObserved_TellsItsWholeStory is the program with a real Redis and a real Prometheus. It takes about a minute, in
// which it mostly waits.
func TestObserved_TellsItsWholeStory(t *testing.T) {
	t.Parallel()
	svg := filepath.Join(t.TempDir(), "observed.svg")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, words := &printed{text: "Interrupt to end", seen: make(chan struct{})}, &printed{}
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"-trace", "-keep", "-svg", svg}, out, words) }()
	select {
	case <-out.seen:
	case c := <-code:
		if c == command.Missing {
			t.Skip(words)
		}
		t.Fatalf("it ends with %d: %s\n%s", c, words, out)
	}
	kept := prom{addr: regexp.MustCompile(`http://(\S+)/alerts`).FindStringSubmatch(out.String())[1]}
	if _, err := kept.alerts(ctx); err != nil {
		t.Errorf("with -keep Prometheus does not answer: %v", err)
	}
	checkDashboard(ctx, t, kept)
	cancel()
	if c := <-code; c != 0 || words.String() != "" {
		t.Errorf("it ends with %d: %s", c, words)
	}
	if _, err := kept.alerts(t.Context()); err == nil {
		t.Error("Prometheus outlives the program")
	}
	checkStory(t, out.String())
	text, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	checkPicture(t, text, "InterlockRenewalsFail", "InterlockRenewalsLate", "InterlockManyWait", "InterlockLockLost",
		"link cut", "mended", "shop 1 stopped", "lease over", "goes on", "class=\"fred\"", "class=\"fpending\"")
}

// checkStory wants all of the story, and that the runbook has what it refers to.
func checkStory(t *testing.T, text string) {
	t.Helper()
	t.Log("\n" + text)
	rest := text
	for _, part := range story {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("it does not say %q where it should", part)
			continue
		}
		rest = after
	}
	page, err := os.ReadFile("../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	books := regexp.MustCompile(`See docs/alerts\.md#(\w+)`).FindAllStringSubmatch(text, -1)
	for _, book := range books {
		if !strings.Contains(strings.ToLower(string(page)), "\n## "+book[1]+"\n") {
			t.Errorf("the runbook has no heading for %s", book[1])
		}
	}
	if len(books) != 4 {
		t.Errorf("it refers to %d pages of the runbook, not to one for each of four alerts", len(books))
	}
}

// TestHasten_ChangesNothingButTheUnit: what is shown must be the alerts that users have.
func TestHasten_ChangesNothingButTheUnit(t *testing.T) {
	rules, err := readRules("")
	if err != nil {
		t.Fatal(err)
	}
	const seconds = `(\[|\bfor: |\boffset )(\d+)s\b`
	if found := regexp.MustCompile(seconds).FindString(rules); found != "" {
		t.Fatalf("the rules have %q, which could not be told from what was a minute", found)
	}
	fast := hasten(rules)
	if found := regexp.MustCompile(`(\[|for: *|offset *)\d+[mhd]`).FindString(fast); found != "" || fast == rules {
		t.Errorf("%q is left as it was", found)
	}
	if back := regexp.MustCompile(seconds).ReplaceAllString(fast, "${1}${2}m"); back != rules {
		t.Error("more than the units of time has changed")
	}
}

func TestUntil_ThatNeverHolds_EndsWithWhatItSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused, for a test")
		err := until(t.Context(), "the moon", func(context.Context) (bool, error) { return true, refused })
		if !errors.Is(err, errNever) || !errors.Is(err, refused) || !strings.Contains(err.Error(), "the moon") {
			t.Errorf("got %v", err)
		}
		begin, looks := time.Now(), 0
		err = until(t.Context(), "a second", func(context.Context) (bool, error) {
			looks++
			return time.Since(begin) >= time.Second, nil
		})
		if err != nil || looks < 2 {
			t.Errorf("after %d looks: %v", looks, err)
		}
	})
}

// TestCountAll_NoticesWhatIsWrong is why a trade that was done by half would be noticed.
func TestCountAll_NoticesWhatIsWrong(t *testing.T) {
	t.Parallel()
	client, err := connect(host.Addr(t, host.Redis))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	customers := []string{"bob", "cid"}
	first := bazaar.NewItem(warehouse, 0)
	for name, args := range map[string][]string{
		"":                      {"PING"},
		"money made":            {"INCRBY", bazaar.FundsKey("bob"), "1"},
		"an item lost":          {"ZREM", bazaar.MarketKey, first.Member()},
		"an item in two places": {"SADD", bazaar.StoreKey("cid"), first.Item},
	} {
		err := errors.Join(client.Do(t.Context(), client.B().Flushdb().Build()).Error(),
			stock(t.Context(), client, customers),
			client.Do(t.Context(), client.B().Arbitrary(args...).Build()).Error())
		if err != nil {
			t.Fatal(err)
		}
		err = countAll(t.Context(), client, customers)
		if name == "" && err != nil || name != "" && !errors.Is(err, errWrong) {
			t.Errorf("%q: the count says %v", name, err)
		}
	}
}

func TestRun_RefusesWhatItCannotDo(t *testing.T) {
	for want, all := range map[int][][]string{
		command.Usage: {
			{"-shops", "1"}, {"-customers", "7"}, {"-shops", "100", "-customers", "100"}, {"-nosuch"}, {"everything"},
		},
		command.Failed: {{"-rules", "nosuch.yaml"}},
	} {
		for _, args := range all {
			var out, words bytes.Buffer
			if code := run(t.Context(), args, &out, &words); code != want || words.Len() == 0 {
				t.Errorf("%q: exit code %d, words %q; want %d and what is wrong", args, code, &words, want)
			}
		}
	}
}
