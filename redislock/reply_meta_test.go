package redislock

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"
)

func TestMeta_IsReadAsItWasWritten(t *testing.T) {
	words := []string{"", "host:12", `a "quoted" one`, `back\slash`, "<&>", "zwei Wörter", `","c":"`, `"}`, "\x00\n"}
	for _, owner := range words {
		for _, client := range words {
			for _, label := range words {
				for mark := unmarked; mark <= retained; mark++ {
					want := meta{mark, owner, client, label}
					if got := parseMeta(string(appendMeta(nil, want))); got != want {
						t.Errorf("%+v is read as %+v", want, got)
					}
				}
			}
		}
	}
}

func FuzzMeta_IsReadAsJSON(f *testing.F) {
	for _, s := range []string{
		`{"o":"a"}`, `{"o":"a","c":"b","l":"c"}`, `{"o":"a","l":"c","c":"b"}`, `{"o":"a","x":"y"}`, `{"c":"b"}`,
		`{"o":"a","c":"b"`, `{"o":1}`, ``, `{}`, `{"o":"a","c":"b"},"l":"c"}`, `{"o":"","c":"\u0041"}`,
		`{"o":"a","o":"b"}`, `{"r":1,"o":"a"}`, `{"r":2,"o":"","c":"b","l":"c"}`, `{"r":0,"o":"a"}`, `{"r":12,"o":"a"}`,
		`{"o":"a","r":1}`, `{"r":1}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, is := plainMeta(s)
		if !is || !json.Valid([]byte(s)) || !utf8.ValidString(s) { // JSON mends what is no UTF-8
			return
		}
		var want meta
		if err := json.Unmarshal([]byte(s), &want); err != nil || m != want {
			t.Errorf("%q is read as %+v, and as JSON it is %+v (%v)", s, m, want, err)
		}
	})
}

func TestReply_GrantedAsAsked(t *testing.T) {
	for _, c := range []struct {
		text string
		want reply
	}{
		{
			"G 1700000000000001",
			reply{
				verdict: granted, now: 1700000000000001, token: 1700000000000001, tokens: 64, nonce: "a",
				lease: time.Second,
			},
		},
		{"G 5 7 1 b 2000", reply{verdict: granted, now: 5, token: 7, tokens: 1, nonce: "b", lease: 2 * time.Second}},
		{"G x", reply{verdict: unreadable}},
		{"G 0", reply{verdict: unreadable}},
		{"gone", reply{verdict: over}},
	} {
		got := parseReply(Reply{Text: c.text})
		got.asAsked(64, "a", time.Second)
		if got.detail = ""; got != c.want {
			t.Errorf("%q is read as %+v, want %+v", c.text, got, c.want)
		}
	}
}
