package zklock

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func TestEncode_WritesEveryNameAsOneComponent(t *testing.T) {
	for name, want := range map[string]string{
		"stock":                  "stock",
		"Stock-42_b":             "Stock-42_b",
		"order:7":                "order%3A7",
		"a/b":                    "a%2Fb",
		".":                      "%2E",
		"..":                     "%2E.",
		"a.b":                    "a.b",
		"zookeeper":              "zookeeper",
		"锁":                      "%E9%94%81",
		"%2F":                    "%252F",
		"\x00":                   "%00",
		" ":                      "%20",
		strings.Repeat("/", 512): strings.Repeat("%2F", 512),
	} {
		if got := encode(name); got != want {
			t.Errorf("%q is written as %q, want %q", name, got, want)
		}
		if got, ok := decode(want); !ok || got != name {
			t.Errorf("%q is read as %q, %v, want %q", want, got, ok, name)
		}
	}
}

func TestDecode_RefusesWhatEncodeNeverWrites(t *testing.T) {
	for _, component := range []string{"", "%", "%2", "%2f", "%41", "a%", ".a", "a b", "锁", "%2E%2E"} {
		if name, ok := decode(component); ok {
			t.Errorf("%q is read as %q", component, name)
		}
	}
}

func TestEncode_OfRandomNames_IsReversible(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		b := make([]byte, 1+r.IntN(20))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		if got, ok := decode(encode(string(b))); !ok || got != string(b) {
			t.Fatalf("%q is written as %q and read as %q, %v", b, encode(string(b)), got, ok)
		}
	}
}

func TestPlaces_AreOrderedByTheirNumberAlone(t *testing.T) {
	all := inOrder([]string{
		"wzzz-0000000010", "raaa-0000000009", "not ours", "w-0000000001", "ubbb-0000000011", "x1-0000000000", "wa-b",
		"wccc-0000000002",
	})
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	if got := strings.Join(names, " "); got != "wccc-0000000002 raaa-0000000009 wzzz-0000000010 ubbb-0000000011" {
		t.Errorf("the order is %s", got)
	}
}

func TestBlocker_IsTheNearestThatIsInTheWay(t *testing.T) {
	for queue, want := range map[string]int{
		"w":     -1,
		"ww":    0,
		"www":   1,
		"rrr":   -1,
		"rrw":   1,
		"wrr":   0, // not the reader between
		"rwr":   1,
		"rwrr":  1,
		"ru":    -1,
		"uru":   0,
		"urr":   -1,
		"urw":   1,
		"wuu":   1,
		"rrrwu": 3,
	} {
		var all []queuePlace
		for i, c := range queue {
			all = append(all, queuePlace{mode: driver.Mode(strings.IndexRune(modes, c)), seq: int32(i)})
		}
		if got := blocker(all, len(all)-1); got != want {
			t.Errorf("the last of %s waits for %d, want %d", queue, got, want)
		}
	}
}
