package filelock

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var exampleRecord = record{
	First: 1_700_000_000_000_000, Last: 1_700_000_000_000_063, Since: time.UnixMicro(1_700_000_000_000_000), PID: 4711,
	Name: "nightly", Owner: "o-1", Client: "host:4711", Label: "backup",
}

func TestRecord_IsReadAsWritten(t *testing.T) {
	long := strings.Repeat("日", 1000)
	for _, r := range []record{
		exampleRecord,
		{First: 1, Last: 1, Since: time.UnixMicro(0)},
		{
			First: maxToken, Last: maxToken, Since: time.UnixMicro(-1),
			Name: strings.Repeat("n", maxName), Owner: long, Client: long, Label: long,
		},
	} {
		p := r.appendTo(nil)
		if len(p) > maxRecord {
			t.Errorf("%d bytes", len(p))
		}
		// An earlier, longer record leaves a rest.
		got, err := decodeRecord(append(p, "rest of an earlier record"...))
		want := r
		want.Owner, want.Client, want.Label = trim(r.Owner), trim(r.Client), trim(r.Label)
		if err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		if !utf8.ValidString(got.Owner) {
			t.Error("a text is cut within a character")
		}
	}
}

func TestDecodeRecord_OfEveryDamage_IsRefused(t *testing.T) {
	whole := exampleRecord.appendTo(nil)
	if _, err := decodeRecord(nil); !errors.Is(err, errNoRecord) {
		t.Errorf("empty: %v", err)
	}
	for n := 1; n < len(whole); n++ {
		if _, err := decodeRecord(whole[:n]); !errors.Is(err, errBadRecord) {
			t.Fatalf("torn after %d bytes: %v", n, err)
		}
	}
	for i := range whole {
		p := bytes.Clone(whole)
		p[i] ^= 0x10
		if _, err := decodeRecord(p); !errors.Is(err, errBadRecord) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	for name, r := range map[string]record{
		"no token":       {},
		"backwards":      {First: 2, Last: 1},
		"beyond 63 bits": {First: 1, Last: 1 << 63},
		"all ones":       {First: 1, Last: ^uint64(0)},
	} {
		if _, err := decodeRecord(r.appendTo(nil)); !errors.Is(err, errBadRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	whole := exampleRecord.appendTo(nil)
	f.Add(whole)
	f.Add(whole[:recordHeader])
	f.Add([]byte{})
	f.Add([]byte("12345\n"))
	f.Add(make([]byte, maxRecord))
	f.Add(bytes.Repeat([]byte{0xff}, maxRecord))
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := decodeRecord(p)
		if err != nil {
			return
		}
		if len(r.Name) > maxName || max(len(r.Owner), len(r.Client), len(r.Label)) > maxText {
			return // not written like this
		}
		again, err := decodeRecord(r.appendTo(nil))
		if err != nil || again != r {
			t.Errorf("%+v is read again as %+v, %v", r, again, err)
		}
	})
}
