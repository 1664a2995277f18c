package resp

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/redislock/conn"
)

func TestDecode_ReadsEveryKindOfAnswer(t *testing.T) {
	for message, want := range map[string]any{
		"+OK\r\n":                        "OK",
		"$5\r\na\r\nbc\r\n":              "a\r\nbc",
		"$0\r\n\r\n":                     "",
		"$-1\r\n":                        nil,
		"*-1\r\n":                        nil,
		"_\r\n":                          nil,
		":-12\r\n":                       int64(-12),
		"#t\r\n":                         int64(1),
		"#f\r\n":                         int64(0),
		",1.5\r\n":                       "1.5",
		"(123456789012345678901\r\n":     "123456789012345678901",
		"=6\r\ntxt:ab\r\n":               "ab",
		"*0\r\n":                         []any{},
		"*2\r\n:1\r\n*1\r\n$1\r\nx\r\n":  []any{int64(1), []any{"x"}},
		"~1\r\n_\r\n":                    []any{nil},
		"%1\r\n+k\r\n:1\r\n":             []any{"k", int64(1)},
		"*1\r\n-ERR inside\r\n":          []any{"ERR inside"},
		"*1\r\n!3\r\nERR\r\n":            []any{"ERR"},
		"|1\r\n+k\r\n+v\r\n:7\r\n":       int64(7),
		"*1\r\n|1\r\n+k\r\n+v\r\n:7\r\n": []any{int64(7)},
		"-ERR no\r\n":                    ServerError("ERR no"),
		"!6\r\nERR no\r\n":               ServerError("ERR no"),
	} {
		n, err := new(scanner).message([]byte(message + "+next\r\n"))
		if err != nil || n != len(message) {
			t.Errorf("%q ends at %d (%v), want %d", message, n, err, len(message))
			continue
		}
		got, err := decode(skipAttributes([]byte(message)))
		if refusal, ok := want.(ServerError); ok {
			if err != refusal { //nolint:errorlint // it is not wrapped
				t.Errorf("%q is read as %v, %v", message, got, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %#v, %v, want %#v", message, got, err, want)
		}
	}
}

func TestDecodeText_TakesTextsOnly(t *testing.T) {
	for message, want := range map[string]error{
		"$1\r\nx\r\n": nil, "+x\r\n": nil, "=5\r\ntxt:x\r\n": nil,
		"$-1\r\n": errNil, "_\r\n": errNil, ":1\r\n": ErrNoText, "*0\r\n": ErrNoText, "-ERR\r\n": ServerError("ERR"),
	} {
		text, err := decodeText([]byte(message))
		if !errors.Is(err, want) || (err == nil) != (text == "x") {
			t.Errorf("%q is read as %q, %v, want %v", message, text, err, want)
		}
	}
}

func TestScanner_RefusesWhatIsNotRESP3(t *testing.T) {
	for _, message := range []string{
		"x\r\n", "\r\n", "\n", "+\n", "$x\r\n", "$-2\r\n", "$1\r\nab\r\n", "$1x\r\n", "*+1\r\n", "$?\r\n", "*?\r\n",
		".\r\n", "*\r\n", "$99999999\r\n", "*16777217\r\n", "*9000000\r\n", "*1\r\n*1\r\nHTTP/1.1 400 Bad Request\r\n",
		"+" + strings.Repeat("x", longestLine),
	} {
		if n, err := new(scanner).message([]byte(message)); n != 0 || !errors.Is(err, errProtocol) {
			t.Errorf("%.40q: %d, %v, want an error", message, n, err)
		}
	}
	deep := strings.Repeat("*1\r\n", deepestList+1) + "_\r\n"
	if _, err := decode([]byte(deep)); !errors.Is(err, errProtocol) {
		t.Errorf("lists that are nested too deep: %v", err)
	}
}

// FuzzScanner feeds bytes in pieces, which must make no difference, and reads what is found.
func FuzzScanner(f *testing.F) {
	for _, message := range []string{
		"+OK\r\n-ERR x\r\n:1\r\n", "$3\r\nabc\r\n$-1\r\n", "*2\r\n$1\r\na\r\n*1\r\n_\r\n", "%1\r\n+k\r\n#t\r\n",
		">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", "|1\r\n+k\r\n,1.5\r\n=5\r\ntxt:x\r\n",
		"~1\r\n(12\r\n!1\r\nE\r\n", ">1\r\n:1\r\n", ">0\r\n", ">2\r\n$9\r\nsubscribe\r\n_\r\n",
		"|1\r\n|1\r\n+a\r\n+b\r\n+c\r\n+d\r\n+e\r\n", "=-1\r\n", "!-1\r\n", "=2\r\nab\r\n", "|-1\r\n*-1\r\n", ":x\r\n",
	} {
		f.Add([]byte(message), 1)
		f.Add([]byte(message), 7)
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		piece = max(1, min(piece, len(stream)))
		whole, err := split(stream, len(stream))
		pieces, err2 := split(stream, piece)
		if !reflect.DeepEqual(whole, pieces) || (err == nil) != (err2 == nil) {
			t.Fatalf("%q: %q, %v as a whole, %q, %v in pieces of %d", stream, whole, err, pieces, err2, piece)
		}
		for _, m := range whole {
			rest := skipAttributes([]byte(m))
			_, _ = decode(rest)
			_, _ = decodeText(rest)
			if rest[0] == '>' {
				_, _, _, _ = new(input).push(rest)
			}
		}
	})
}

// split returns the messages of a stream that comes in pieces.
func split(stream []byte, piece int) (messages []string, err error) {
	var s scanner
	for from, to := 0, 0; to < len(stream); {
		to = min(to+piece, len(stream))
		for {
			n, err := s.message(stream[from:to])
			if err != nil {
				return messages, err
			}
			if n == 0 {
				break
			}
			messages = append(messages, string(stream[from:from+n]))
			from += n
		}
	}
	return messages, nil
}

func TestAppendCall_IsWhatTheServerReads(t *testing.T) {
	call := &conn.Call{Script: echoScript, Keys: []string{"k", ""}, Args: []string{"a\r\n"}}
	tail := "$1\r\n2\r\n$1\r\nk\r\n$0\r\n\r\n$3\r\na\r\n\r\n"
	want := "*6\r\n$7\r\nEVALSHA\r\n$40\r\n" + echoScript.SHA() + "\r\n" + tail
	if got := string(appendCall(nil, call, false)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if room := callRoom(call); room < len(want) {
		t.Errorf("there is room for %d bytes of %d", room, len(want))
	}
	want = "*6\r\n$4\r\nEVAL\r\n$14\r\nreturn ARGV[1]\r\n" + tail
	if got := string(appendCall(nil, call, true)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
