// META, the JSON that operators see of a request. request.go sends it with an acquire and renew.go with each renewal;
// stored.go and reply.go read it. The scripts look at its beginning only.

package redislock

import (
	"encoding/json"
	"strings"
)

// retention says, in the META of a hold, whether its client may keep the lock after the last owner has released it
// (docs/rationale.md, Retention).
type retention uint8

const (
	unmarked  retention = iota // the client gives the lock back
	mayRetain                  // somebody holds the lock, and the client may keep it afterwards
	retained                   // no owner holds the lock, and the client keeps it
)

// meta is what operators see of a request. Scripts read no more of it than the mark at its beginning, so Retention must
// stay the first field.
type meta struct {
	Retention retention `json:"r,omitempty"`
	Owner     string    `json:"o"`
	Client    string    `json:"c,omitempty"`
	Label     string    `json:"l,omitempty"`
}

// parseMeta reads META. What cannot be read is not shown: it is only for people.
func parseMeta(s string) meta {
	m, is := plainMeta(s)
	if !is {
		_ = json.Unmarshal([]byte(s), &m) // what cannot be read is not shown
	}
	return m
}

// plainMeta reads what appendMeta has written if nothing in it is escaped, as is nearly always so. A JSON decoder would
// cost as much as the rest of a wait. It reports false if the text needs the decoder.
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
			return meta{}, false // other keys or another order: another program's
		}
	}
	return m, true
}

// cutMark cuts off the beginning of what appendMeta has written, up to the owner. It returns "" for anything else.
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

// appendMeta appends m as JSON. The scripts look for the mark at its beginning. No text inside can look like the mark:
// within quotes, a quotation mark has a backslash before it.
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

// appendString appends s as a JSON string. Nearly all are plain ASCII, and those need no encoder.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string can always be written
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
