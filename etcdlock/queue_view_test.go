package etcdlock

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// queueOf makes queue keys of texts such as "x", "s" or "2/3" (permits of a limit).
func queueOf(texts ...string) (all []queueKey) {
	for i, text := range texts {
		p := queueKey{key: fmt.Sprint("k", i), revision: int64(i + 1), record: record{Mode: text}}
		if _, err := fmt.Sscanf(text, "%d/%d", &p.record.Weight, &p.record.Limit); err == nil {
			p.record.Mode = "s"
		}
		all = append(all, p)
	}
	return all
}

func TestJudge_WhoIsIn_AndWhomToWatch(t *testing.T) {
	for _, row := range []struct {
		kind  driver.Kind
		queue []string // the last is who asks
		want  string
	}{
		{driver.KindMutex, []string{"x"}, "in"},
		{driver.KindMutex, []string{"x", "x"}, "watches k0"},
		{driver.KindMutex, []string{"x", "x", "x"}, "watches k1"},
		{driver.KindRWMutex, []string{"s", "s", "s"}, "in"},
		{driver.KindRWMutex, []string{"s", "s", "x"}, "watches k1"},
		{driver.KindRWMutex, []string{"s", "x", "s"}, "watches k1"},
		{driver.KindRWMutex, []string{"x", "s", "s"}, "watches k0"},
		{driver.KindRWMutex, []string{"s", "u", "s"}, "in"},
		{driver.KindRWMutex, []string{"u", "s", "u"}, "watches k0"},
		{driver.KindRWMutex, []string{"s", "u"}, "in"},
		{driver.KindRWMutex, []string{"s", "u", "x"}, "watches k1"},
		{driver.KindSemaphore, []string{"1/3"}, "in"},
		{driver.KindSemaphore, []string{"1/3", "2/3"}, "in"},
		{driver.KindSemaphore, []string{"1/3", "2/3", "1/3"}, "watches all"},
		{driver.KindSemaphore, []string{"1/3", "3/3", "1/3"}, "watches k1, also puts"},
		{driver.KindSemaphore, []string{"1/3", "1/4"}, "conflict 3"},
		{driver.KindSemaphore, []string{"2/3", "4/4", "1/3"}, "in"}, // the one in the middle is about to go
	} {
		all := queueOf(row.queue...)
		mine := all[len(all)-1].record
		o := judge(row.kind, mine, all[:len(all)-1], "all")
		got := "watches " + o.watch
		switch {
		case o.granted:
			got = "in"
		case o.conflict != 0:
			got = fmt.Sprint("conflict ", o.conflict)
		case o.puts:
			got += ", also puts"
		}
		if got != row.want || o.wide != (row.want == "watches all") {
			t.Errorf("%s %v: %s, want %s", row.kind, row.queue, got, row.want)
		}
	}
}

func TestRecord_OfANewerFormat_IsRefused(t *testing.T) {
	for _, text := range []string{`{"v":2}`, `{}`, `no JSON`, ``} {
		if _, err := queueKeyOf(kvOf("key", text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	r := &driver.Request{
		Key: driver.Key{Kind: driver.KindSemaphore, Name: "a"}, ID: "id", Owner: "o", Client: "c", Label: "l",
		Mode: driver.Shared, Limit: 5, Weight: 2, Tokens: 1000,
	}
	p, err := queueKeyOf(kvOf("key", recordOf(r).text()))
	if err != nil {
		t.Fatal(err)
	}
	if want := (record{
		Version: 1, ID: "id", Mode: "s", Weight: 2, Limit: 5, Tokens: blockSize, Owner: "o", Client: "c", Label: "l",
	}); p.record != want {
		t.Errorf("read %+v, want %+v", p.record, want)
	}
	if !p.has(p.token()) || !p.has(p.token()+blockSize-1) || p.has(p.token()+blockSize) || p.has(p.token()-1) {
		t.Errorf("the block of token %d is wrong", p.token())
	}
}
