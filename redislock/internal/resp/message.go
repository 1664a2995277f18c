// The reading of RESP3: first where a message ends (scanner), then what is in it (decode). It is fuzzed: no bytes of a
// server may panic here or take unbounded memory.

package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	// largestMessage is the largest message that is accepted, and longestLine the longest line in it that is not text,
	// in bytes.
	largestMessage, longestLine = 16 << 20, 64 << 10

	// deepestList is how deep lists may be nested.
	deepestList = 32
)

// errProtocol ends the connection: after it nobody knows where the next message begins. errNil and ErrNoText do not.
var (
	errProtocol = errors.New("the server does not speak RESP3")
	errTooLarge = fmt.Errorf("%w: a message is too large", errProtocol)
	// ErrNoText says that a script has answered with something that is not one string.
	ErrNoText = errors.New("the answer is not a text")
	errNil    = fmt.Errorf("%w but nil", ErrNoText)
)

// ServerError is an error that a server has answered with. The connection is sound.
type ServerError string

// Error is the server's message.
func (e ServerError) Error() string { return string(e) }

// scanner finds out where a message ends. It continues where it was when more bytes have come, so that a message is not
// scanned anew with each of its pieces. The zero value is at the beginning of a message.
type scanner struct {
	pos  int // up to here the message is whole
	open int // how many values must still follow, less one
}

// message returns the length of the message at the beginning of b, or 0 if it is not whole. In the latter case the next
// call must have the same bytes and more.
func (s *scanner) message(b []byte) (int, error) {
	for {
		size, more, err := value(b[s.pos:])
		if size == 0 {
			return 0, err
		}
		s.pos += size
		s.open += more - 1
		if s.open < 0 {
			n := s.pos
			*s = scanner{}
			return n, nil
		}
		// Each value has three bytes at least, so a list that announces too many is refused before they come.
		if s.pos+3*s.open > largestMessage {
			return 0, errTooLarge
		}
	}
}

// value reads the head of the value at the beginning of b. It returns its length, without the values that belong to it,
// and their number. The length is 0 if the value is not there in full.
func value(b []byte) (size, more int, err error) {
	if len(b) == 0 {
		return 0, 0, nil
	}
	end := bytes.IndexByte(b[:min(len(b), longestLine)], '\n')
	switch {
	case end < 0 && len(b) >= longestLine:
		return 0, 0, errTooLarge
	case end < 0:
		return 0, 0, nil
	case end < 2 || b[end-1] != '\r':
		return 0, 0, errProtocol
	}
	switch b[0] {
	case '+', '-', ':', '_', '#', ',', '(':
		return end + 1, 0, nil
	}
	n, err := length(b[1 : end-1])
	if err != nil {
		return 0, 0, err
	}
	switch b[0] {
	case '$', '!', '=':
		return text(b, end+1, n)
	case '*', '~', '>':
		return end + 1, max(n, 0), nil
	case '%':
		return end + 1, 2 * max(n, 0), nil
	case '|': // an attribute: its map, and then the value that it is about
		return end + 1, 2*max(n, 0) + 1, nil
	}
	return 0, 0, errProtocol
}

// text checks a text of n bytes that begins at start, with the end of the line behind it.
func text(b []byte, start, n int) (size, more int, err error) {
	if n < 0 { // the nil of RESP2
		return start, 0, nil
	}
	size = start + n + 2
	if size > len(b) {
		return 0, 0, nil
	}
	if b[size-2] != '\r' || b[size-1] != '\n' {
		return 0, 0, errProtocol
	}
	return size, 0, nil
}

// length reads a length: digits, or -1. It has at most nine digits, so it cannot overflow.
func length(b []byte) (int, error) {
	if len(b) == 2 && b[0] == '-' && b[1] == '1' {
		return -1, nil
	}
	if len(b) == 0 || len(b) > 9 {
		return 0, errProtocol
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, errProtocol
		}
		n = 10*n + int(c-'0')
	}
	if n > largestMessage {
		return 0, errTooLarge
	}
	return n, nil
}

// What follows reads messages that are there in full, as scanner says.

// skipAttributes returns the message without the attributes in front of it, which nothing here uses.
func skipAttributes(m []byte) []byte {
	for m[0] == '|' {
		n, rest, _ := decodeHeader(m) // cannot fail
		for range 2 * n {
			size, _ := new(scanner).message(rest) // cannot fail either
			rest = rest[size:]
		}
		m = rest
	}
	return m
}

// decodeHeader returns the number in the first line, and what follows that line.
func decodeHeader(m []byte) (int, []byte, error) {
	line, rest := cutLine(m)
	n, err := length(line)
	return n, rest, err
}

// cutLine returns the first line without the byte that tells its kind, and what follows it.
func cutLine(m []byte) (line, rest []byte) {
	end := bytes.IndexByte(m, '\n')
	return m[1 : end-1], m[end+1:]
}

// decodeBulk returns a text, and what follows it.
func decodeBulk(m []byte) (text, rest []byte, err error) {
	if len(m) == 0 || (m[0] != '$' && m[0] != '=') {
		if len(m) > 0 && m[0] == '+' {
			text, rest = cutLine(m)
			return text, rest, nil
		}
		return nil, nil, errProtocol
	}
	n, rest, err := decodeHeader(m)
	switch {
	case err != nil:
		return nil, nil, err
	case n < 0:
		return nil, nil, errNil
	case m[0] == '=' && n >= 4: // a verbatim text: its format comes first, as in "txt:"
		return rest[4:n], rest[n+2:], nil
	}
	return rest[:n], rest[n+2:], nil
}

// decodeText returns the answer to a script. It avoids decode for the usual case, which would allocate more.
func decodeText(m []byte) (string, error) {
	// The first byte is the type of the answer.
	switch m[0] {
	case '$', '+', '=':
		text, _, err := decodeBulk(m)
		return string(text), err
	}
	value, err := decode(m)
	switch {
	case err != nil:
		return "", err
	case value == nil:
		return "", errNil
	}
	return "", ErrNoText
}

// decode returns an answer: string, int64, nil, or []any of these; a map is a list of keys and values. An error of the
// server is returned as the error.
func decode(m []byte) (any, error) {
	value, _, err := decodeValue(m, deepestList)
	if refusal, isRefusal := value.(ServerError); isRefusal && err == nil {
		return nil, refusal
	}
	return value, err
}

// decodeValue reads one value and returns what follows it. depth bounds the recursion.
func decodeValue(m []byte, depth int) (value any, rest []byte, err error) {
	m = skipAttributes(m)
	switch m[0] {
	case '*', '~', '>', '%':
		return decodeList(m, depth)
	case '$', '=', '+':
		text, rest, err := decodeBulk(m)
		if errors.Is(err, errNil) {
			_, rest = cutLine(m)
			return nil, rest, nil
		}
		return string(text), rest, err
	case '!':
		n, rest, err := decodeHeader(m)
		if err != nil || n < 0 {
			return nil, nil, errProtocol
		}
		return ServerError(rest[:n]), rest[n+2:], nil
	}
	line, rest := cutLine(m)
	switch m[0] {
	case '-':
		return ServerError(line), rest, nil
	case '_':
		return nil, rest, nil
	case ':':
		n, err := strconv.ParseInt(string(line), 10, 64)
		if err != nil {
			return nil, nil, errProtocol
		}
		return n, rest, nil
	case '#':
		return int64(strings.Count(string(line), "t")), rest, nil
	}
	return string(line), rest, nil // numbers for which Go has no type of its own
}

// decodeList reads a list or map. An error inside is kept as text: the answer itself is none.
func decodeList(m []byte, depth int) (any, []byte, error) {
	n, rest, err := decodeHeader(m)
	switch {
	case err != nil:
		return nil, nil, err
	// The depth is bounded, because decoding recurses and the message comes from outside.
	case depth == 0:
		return nil, nil, errTooLarge
	case n < 0:
		return nil, rest, nil
	// A map is a list of keys and values, so it has twice as many elements as its header says.
	case m[0] == '%':
		n *= 2
	}
	list := make([]any, n)
	for i := range list {
		if list[i], rest, err = decodeValue(rest, depth-1); err != nil {
			return nil, nil, err
		}
		if refusal, isRefusal := list[i].(ServerError); isRefusal {
			list[i] = string(refusal)
		}
	}
	return list, rest, nil
}
