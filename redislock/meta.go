package redislock

import (
	"encoding/json"
	"strings"
)

// retention is what the META of a hold says of it: whether its client may keep the lock when nobody holds it any more.
type retention uint8

const (
	unmarked retention = iota
	mayRetain
	retained // nobody holds the lock, and the client keeps it
)

// meta is what operators see of a request. Scripts read no more of it than the mark at its beginning.
type meta struct {
	Retention retention `json:"r,omitempty"`
	Owner     string    `json:"o"`
	Client    string    `json:"c,omitempty"`
	Label     string    `json:"l,omitempty"`
}

func parseMeta(s string) meta {
	m, is := plainMeta(s)
	if !is {
		_ = json.Unmarshal([]byte(s), &m) // what cannot be read is not shown
	}
	return m
}

// plainMeta reads what appendMeta has written if nothing in it is escaped, as nearly always. A decoder would cost as
// much as the rest of a wait.
func plainMeta(s string) (m meta, is bool) {
	rest, ends := strings.CutSuffix(s, `"}`)
	rest, mark := cutMark(rest)
	rest, begins := strings.CutPrefix(rest, `"o":"`)
	if !ends || !begins || strings.IndexByte(rest, '\\') >= 0 {
		return m, false
	}
	m.Retention = mark
	rest, m.Label, _ = strings.Cut(rest, `","l":"`)
	m.Owner, m.Client, _ = strings.Cut(rest, `","c":"`)
	for _, part := range [...]string{m.Owner, m.Client, m.Label} {
		if strings.IndexByte(part, '"') >= 0 {
			return meta{}, false // another program's: other keys, or another order
		}
	}
	return m, true
}

// cutMark cuts the beginning of what appendMeta has written off, up to the owner. Of anything else it leaves nothing.
func cutMark(s string) (rest string, mark retention) {
	const width = len(`{"r":1,`)
	switch {
	case len(s) > width && strings.HasPrefix(s, `{"r":`) && s[width-2] > '0' && s[width-2] <= '9' && s[width-1] == ',':
		return s[width:], retention(s[width-2] - '0')
	case strings.HasPrefix(s, "{"):
		return s[1:], unmarked
	}
	return "", unmarked
}

// appendMeta appends m as JSON. The scripts look for the mark at its beginning, which no text inside can look like:
// what is in quotes has none of its own but behind a backslash.
func appendMeta(b []byte, m meta) []byte {
	b = append(b, '{')
	if m.Retention != unmarked {
		b = append(b, `"r":`...)
		b = append(b, '0'+byte(m.Retention), ',')
	}
	b = appendString(append(b, `"o":`...), m.Owner)
	if m.Client != "" {
		b = appendString(append(b, `,"c":`...), m.Client)
	}
	if m.Label != "" {
		b = appendString(append(b, `,"l":`...), m.Label)
	}
	return append(b, '}')
}

// appendString appends s as a JSON string. Nearly all are plain, and those need no encoder.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string can always be written
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
