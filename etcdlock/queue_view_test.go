package etcdlock

import (
	"fmt"
	"math/rand/v2"
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

// reference is judge without a crowd: it compares a request with each key before it, by a rule for each kind of lock.
func reference(k driver.Kind, mine record, ahead []queueKey, prefix string) queueView {
	if k != driver.KindSemaphore {
		for i := len(ahead) - 1; i >= 0; i-- {
			if onlyOne(k) || conflicts(mine.Mode, ahead[i].record.Mode) {
				return queueView{holder: ahead[0], watch: ahead[i].key, predecessor: ahead[i]}
			}
		}
		return queueView{granted: true}
	}
	if len(ahead) == 0 {
		return queueView{granted: true}
	}
	limit := ahead[0].record.Limit
	if limit != mine.Limit {
		return queueView{conflict: limit, holder: ahead[0]}
	}
	taken, first := 0, true // first: this is the first that does not fit
	for i := range ahead {
		if ahead[i].record.Limit == limit {
			taken += ahead[i].record.Weight
			first = first && taken <= limit
		}
	}
	switch {
	case taken+mine.Weight <= limit:
		return queueView{granted: true}
	case first:
		return queueView{holder: ahead[0], watch: prefix, wide: true}
	default:
		return queueView{holder: ahead[0], watch: ahead[len(ahead)-1].key, puts: true}
	}
}

// randomQueue makes a queue of any length, with any modes, weights (also 0, and more than the limit) and limits.
func randomQueue(random *rand.Rand) (all []queueKey) {
	for i := range random.IntN(12) {
		p := queueKey{key: fmt.Sprint("k", i), revision: int64(i + 1)}
		p.record = record{Mode: modes[random.IntN(len(modes))], Weight: random.IntN(5), Limit: 4}
		if random.IntN(6) == 0 {
			p.record.Limit = 3 + 2*random.IntN(2)
		}
		all = append(all, p)
	}
	return all
}

// Operators see, and break, the holders that the requests themselves take for holders.
func TestSplit_OfAnyQueue_IsWhatEachRequestJudges(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		kind, queue := kinds[random.IntN(len(kinds))], randomQueue(random)
		holders, waiters := split(kind, queue)
		for i, p := range queue {
			view := judge(kind, p.record, queue[:i], "all")
			if want := reference(kind, p.record, queue[:i], "all"); view != want {
				t.Fatalf("seed %d, %s %+v, request %d: %+v, want %+v", seed, kind, queue, i, view, want)
			}
			of := &waiters
			if view.granted {
				of = &holders
			}
			if len(*of) == 0 || (*of)[0] != p {
				t.Fatalf("seed %d, %s %+v: split and judge differ about request %d", seed, kind, queue, i)
			}
			*of = (*of)[1:]
		}
		if len(holders)+len(waiters) > 0 {
			t.Fatalf("seed %d, %s %+v: split tells of more requests than there are", seed, kind, queue)
		}
	}
}

// BenchmarkSplit is what a listing or a break does with a long queue: readers behind a writer, or permits.
func BenchmarkSplit(b *testing.B) {
	const waiters = 10_000
	for _, kind := range []driver.Kind{driver.KindRWMutex, driver.KindSemaphore} {
		queue := make([]queueKey, 1+waiters)
		for i := range queue {
			queue[i].record = record{Mode: "s", Weight: 1, Limit: 1}
		}
		queue[0].record.Mode = "x"
		b.Run(string(kind), func(b *testing.B) {
			for b.Loop() {
				split(kind, queue)
			}
		})
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
