package servers

import (
	"bufio"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestReadRedisValue_OfBothVersions(t *testing.T) {
	text := "*3\r\n$3\r\na\r\n\r\n:7\r\n$-1\r\n" + "%1\r\n+k\r\n_\r\n" +
		">2\r\n=7\r\ntxt:abc\r\n-ERR x\r\n" + "*-1\r\n" + "*0\r\n"
	in := bufio.NewReader(strings.NewReader(text))
	var got []any
	for {
		v, err := ReadRedisValue(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		plain, err := v.plain()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, plain)
	}
	want := []any{
		[]any{"a\r\n", int64(7), nil}, []any{"k", nil}, []any{"abc", RedisError("ERR x")}, nil, []any{},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v\nwant %#v", got, want)
	}
}

// What is cut off is told from what is no value: more may come.
func TestReadRedisValue_ThatIsCutOff_IsTheEndOfWhatThereIs(t *testing.T) {
	const whole = "*2\r\n$3\r\nabc\r\n%1\r\n+k\r\n:1\r\n"
	for n := range whole {
		_, err := ReadRedisValue(bufio.NewReader(strings.NewReader(whole[:n])))
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v", whole[:n], err)
		}
	}
}

func TestReadRedisValue_OfALengthThatCannotBe_IsAnError(t *testing.T) {
	for _, kind := range "$=!*~>%|" {
		text := string(kind) + "9223372036854775807\r\nx\r\n"
		_, err := ReadRedisValue(bufio.NewReader(strings.NewReader(text)))
		if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
