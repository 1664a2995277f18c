package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/examples/internal/bazaar"
	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/host"
	"github.com/redis/rueidis"
)

func TestMarket_InEveryWay_LosesAndMakesNothing(t *testing.T) {
	addr := host.Addr(t, host.Redis)
	for _, separate := range []bool{false, true} {
		s := settings{duration: 150 * time.Millisecond, separate: separate, ways: ways, crowds: []crowd{{1, 1}, {5, 5}}}
		var out bytes.Buffer
		if err := trade(t.Context(), addr, s, &out); err != nil {
			t.Fatalf("separate=%t: %v", separate, err)
		}
		for _, w := range ways {
			if strings.Count(out.String(), w.name) < len(s.crowds) {
				t.Errorf("not every row of %q is in the table:\n%s", w.name, &out)
			}
		}
	}
}

// TestCount_NoticesWhatIsWrong is why a way that is not correct would be noticed.
func TestCount_NoticesWhatIsWrong(t *testing.T) {
	addr := host.Addr(t, host.Redis)
	client, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tests := map[string]struct {
		command string
		args    func(o bazaar.Offer) []string
	}{
		"money made": {"INCRBY", func(bazaar.Offer) []string {
			return []string{bazaar.FundsKey("seller0"), "1"}
		}},
		"money lost": {"DECRBY", func(bazaar.Offer) []string {
			return []string{bazaar.FundsKey("buyer0"), "1"}
		}},
		"an item lost": {"ZREM", func(o bazaar.Offer) []string {
			return []string{bazaar.MarketKey, o.Member()}
		}},
		"an item in two places": {"SADD", func(o bazaar.Offer) []string {
			return []string{bazaar.StoreKey("buyer0"), o.Item}
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := crowd{1, 1}
			day := &traders{
				settings: settings{duration: 30 * time.Millisecond}, way: wayOf(byOneLock), crowd: c,
				b: bazaar.Book{C: client}, produced: crate,
			}
			err := errors.Join(open(t.Context(), client, c),
				day.trade(t.Context(), addr), day.count(t.Context(), client))
			if err != nil {
				t.Fatal(err)
			}
			o, found, err := day.b.Pick(t.Context())
			if !found || err != nil {
				t.Fatalf("nothing is for sale (%v)", err)
			}
			wrong := client.B().Arbitrary(test.command).Args(test.args(o)...).Build()
			if err := client.Do(t.Context(), wrong).Error(); err != nil {
				t.Fatal(err)
			}
			if err := day.count(t.Context(), client); !errors.Is(err, errWrong) {
				t.Errorf("the count says %v, not what is wrong", err)
			}
		})
	}
}

// TestPurchase_OfAnOfferThatIsGone_ChangesNothing: the second of two who picked the same offer.
func TestPurchase_OfAnOfferThatIsGone_ChangesNothing(t *testing.T) {
	addr := host.Addr(t, host.Redis)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { testGone(t, addr, w) })
	}
}

func testGone(t *testing.T, addr string, w way) {
	ctx := t.Context()
	client, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := open(ctx, client, crowd{1, 2}); err != nil {
		t.Fatal(err)
	}
	h, err := w.open(ctx, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	first, second := h.desk(), h.desk()
	defer first.close()
	defer second.close()
	o := bazaar.NewItem("seller0", 7)
	if bought, _, err := first.buy(ctx, "buyer0", o); !bought || err != nil {
		t.Fatalf("the first buyer: %t, %v", bought, err)
	}
	if bought, _, err := second.buy(ctx, "buyer1", o); bought || err != nil {
		t.Errorf("the second buyer: %t, %v; want false", bought, err)
	}
	has, err := client.Do(ctx, client.B().Get().Key(bazaar.FundsKey("buyer1")).Build()).AsInt64()
	if err != nil || has != purse {
		t.Errorf("the second buyer has %d of %d (%v)", has, purse, err)
	}
}

// TestWatch_ARivalBetweenReadAndChange_IsARetry makes happen what the others do by chance.
func TestWatch_ARivalBetweenReadAndChange_IsARetry(t *testing.T) {
	addr := host.Addr(t, host.Redis)
	client, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := open(t.Context(), client, crowd{1, 1}); err != nil {
		t.Fatal(err)
	}
	c, hangUp := client.Dedicate()
	d := watchDesk{b: bazaar.Book{C: c}, c: c, hangUp: hangUp}
	defer d.close()
	o, rivals := bazaar.NewItem("seller0", 1), 0
	may := func(ctx context.Context) (bool, error) {
		if rivals++; rivals < 3 { // somebody lists something, twice
			member := "x" + strings.Repeat("x", rivals) + ".y"
			zadd := client.B().Zadd().Key(bazaar.MarketKey).ScoreMember().ScoreMember(1, member).Build()
			if err := client.Do(ctx, zadd).Error(); err != nil {
				return false, err
			}
		}
		return d.b.CanBuy(ctx, "buyer0", o)
	}
	watched := []string{bazaar.MarketKey, bazaar.FundsKey("buyer0")}
	done, retries, err := d.optimistic(t.Context(), watched, d.b.Purchase("buyer0", o), may)
	if !done || retries != 2 || err != nil {
		t.Errorf("done %t with %d retries (%v); want done with 2", done, retries, err)
	}
}

func TestSetnx_UnlockOfALockThatIsNotOurs_LeavesIt(t *testing.T) {
	client, err := connect(host.Addr(t, host.Redis))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	l := setnx{client}
	_, unlock, err := l.lock(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Do(t.Context(), client.B().Set().Key(setnxKey).Value("another").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	v, err := client.Do(t.Context(), client.B().Get().Key(setnxKey).Build()).ToString()
	if v != "another" || rueidis.IsRedisNil(err) {
		t.Errorf("the lock of another is %q now (%v)", v, err)
	}
}

func TestRatios_SayWhetherAGoalIsMet(t *testing.T) {
	of := func(way string, bought, retries int) row {
		return row{way: way, crowd: crowd{5, 5}, took: time.Second, bought: bought, retries: retries}
	}
	for want, rows := range map[string][]row{
		"20.0 times what WATCH buys, without a retry; the goal is 20": {
			of(byWatch, 10, 9), of(byItem, 200, 0),
		},
		"19.9 times what WATCH buys; the goal of 20 is MISSED": {
			of(byWatch, 10, 9), of(byItem, 199, 0),
		},
		"20.0 times what WATCH buys; the goal of 20 without a retry is MISSED by 1 retries": {
			of(byWatch, 10, 9), of(byItem, 200, 1),
		},
		"1.4 times what SETNX buys; the goal of 1.5 is MISSED": {
			of(bySetnx, 10, 0), of(byOneLock, 14, 0),
		},
	} {
		if got := ratios(rows); !strings.Contains(got, want+"\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestPicture_IsWellFormed(t *testing.T) {
	some := []row{
		{way: byWatch, crowd: crowd{1, 1}, took: time.Second, bought: 12345},
		{way: byItem, crowd: crowd{5, 5}, took: time.Second},
	}
	for _, rows := range [][]row{nil, some} {
		d := xml.NewDecoder(bytes.NewReader(draw(rows)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestRun_RefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{
		{"-crowds", "5"}, {"-crowds", "0/1"}, {"-ways", "hope"}, {"-duration", "-1s"}, {"-nosuch"}, {"everything"},
	} {
		var out, words bytes.Buffer
		if code := run(t.Context(), args, &out, &words); code != command.Usage || words.Len() == 0 {
			t.Errorf("%q: exit code %d, words %q; want %d and what is wrong", args, code, &words, command.Usage)
		}
	}
}
