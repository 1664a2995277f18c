package play

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// sqlTalk understands a connection to MariaDB: the statements, and whether they were carried out.
type sqlTalk struct {
	*listener

	requests, replies []byte
	deaf              bool
	prepared          map[uint32]string // by the server's number
	preparing         string            // the statement that is being prepared
	said              *story.Wire       // the last statement, until it is answered
}

// The commands of the protocol that have statements.
const (
	sqlQuery   = 0x03
	sqlPrepare = 0x16
	sqlExecute = 0x17
)

// mostPacket is the longest packet that makes sense here: what is longer is encrypted, or something else.
const mostPacket = 1 << 20

func (t *sqlTalk) asks(b []byte) {
	t.requests = t.each(append(t.requests, b...), func(number byte, body []byte) {
		if number != 0 || len(body) == 0 {
			return // of the greeting
		}
		t.preparing, t.said = "", nil
		switch {
		case body[0] == sqlQuery:
			t.said = t.heard(false, statement(string(body[1:])))
		case body[0] == sqlPrepare:
			t.preparing = string(body[1:])
		case body[0] == sqlExecute && len(body) > 9:
			query, known := t.prepared[binary.LittleEndian.Uint32(body[1:])]
			if !known {
				query = "a statement that was prepared before"
			}
			t.said = t.heard(false, statement(fill(query, body[10:])))
		}
	})
}

func (t *sqlTalk) says(b []byte) {
	t.replies = t.each(append(t.replies, b...), func(number byte, body []byte) {
		if number != 1 || len(body) == 0 {
			return // the rest of an answer
		}
		if t.preparing != "" && body[0] == 0 && len(body) > 4 {
			t.prepared[binary.LittleEndian.Uint32(body[1:])] = t.preparing
		}
		t.answered(t.said, outcome(body))
		t.preparing, t.said = "", nil
	})
}

// each calls f for each whole packet, and returns the rest.
func (t *sqlTalk) each(b []byte, f func(number byte, body []byte)) []byte {
	for len(b) >= 4 && !t.deaf {
		size := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		if size > mostPacket {
			t.deaf = true
			break
		}
		if len(b) < 4+size {
			return b
		}
		f(b[3], b[4:4+size])
		b = b[4+size:]
	}
	if t.deaf {
		return nil
	}
	return b
}

// outcome is what an answer is: done, refused, or rows, which are not told.
func outcome(body []byte) string {
	switch body[0] {
	case 0x00:
		if n, _ := length(body[1:]); n > 0 {
			return fmt.Sprintf("rows: %d", n)
		}
		return "OK"
	case 0xff:
		if len(body) > 9 {
			return shorten(string(body[9:]), longestAnswer)
		}
		return "refused"
	default:
		return "a result"
	}
}

// length reads a number of the protocol's variable form, and returns how long that is; 0 if it is not there.
func length(b []byte) (n uint64, size int) {
	if len(b) == 0 {
		return 0, 0
	}
	size = map[byte]int{0xfc: 2, 0xfd: 3, 0xfe: 8}[b[0]]
	if size == 0 {
		return uint64(b[0]), 1
	}
	if len(b) <= size {
		return 0, 0
	}
	for i := size; i > 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n, size + 1
}

// statement is a statement in one line.
func statement(query string) string {
	return shorten(strings.Join(strings.Fields(query), " "), longestStatement)
}

// fill puts values into a prepared statement: b has which are null, the types, and the values.
func fill(query string, b []byte) string {
	parts := strings.Split(query, "?")
	count := len(parts) - 1
	nulls := (count + 7) / 8
	if count == 0 || len(b) < nulls+1+2*count || b[nulls] != 1 {
		return query
	}
	types, rest := b[nulls+1:nulls+1+2*count], b[nulls+1+2*count:]
	var all strings.Builder
	for i, part := range parts[:count] {
		value := "NULL"
		if b[i/8]&(1<<(i%8)) == 0 {
			text, n := sqlValue(types[2*i], types[2*i+1]&0x80 != 0, rest)
			if n == 0 {
				return query // of a type that the lab does not use
			}
			value, rest = text, rest[n:]
		}
		all.WriteString(part + value)
	}
	return all.String() + parts[count]
}

// sqlValue reads one value, and returns how long it is; 0 if it cannot be read.
func sqlValue(kind byte, unsigned bool, b []byte) (text string, n int) {
	switch {
	case kind == 0x08 && len(b) >= 8 && unsigned:
		return strconv.FormatUint(binary.LittleEndian.Uint64(b), 10), 8
	case kind == 0x08 && len(b) >= 8:
		return strconv.FormatInt(int64(binary.LittleEndian.Uint64(b)), 10), 8 //nolint:gosec // as it was sent
	case kind == 0x05 && len(b) >= 8:
		return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)), 'g', -1, 64), 8
	case kind == 0x01 && len(b) >= 1:
		return strconv.Itoa(int(b[0])), 1
	case slices.Contains([]byte{0x0f, 0xfc, 0xfd, 0xfe}, kind):
		size, n := length(b)
		if end := n + int(size); n > 0 && size <= mostPacket && len(b) >= end { //nolint:gosec // it is small
			return sqlText(string(b[n:end])), end
		}
	}
	return "", 0
}

// sqlText is a text in a statement, or bytes.
func sqlText(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "'" + shorten(s, longestWord) + "'"
	}
	return "x'" + shorten(hex.EncodeToString([]byte(s)), longestWord) + "'"
}
