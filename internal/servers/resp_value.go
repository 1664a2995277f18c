package servers

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// longestRedisValue is more than Redis lets anything be long.
const longestRedisValue = 512 << 20

// RedisValue is a value of Redis's protocol, of version 2 or 3.
type RedisValue struct {
	Kind  byte // with which it begins: '+', '$', '*' ...
	Text  string
	Null  bool
	Items []RedisValue // of an array, set or push, and then not nil; of a map keys and values in turn
}

// ReadRedisValue reads one value. The error is io.EOF or io.ErrUnexpectedEOF if there is no more, and of another kind
// if what comes is something else.
func ReadRedisValue(in *bufio.Reader) (v RedisValue, _ error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return v, err
	}
	line, whole := strings.CutSuffix(line, "\r\n")
	if !whole || line == "" {
		return v, fmt.Errorf("redis: a line %q instead of a value", line)
	}
	v.Kind, v.Text = line[0], line[1:]
	switch v.Kind {
	case '+', '-', ':', ',', '#', '(':
		return v, nil
	case '_':
		v.Null = true
		return v, nil
	}
	size, err := strconv.Atoi(v.Text)
	if err != nil || size > longestRedisValue {
		return v, fmt.Errorf("redis: the line %q instead of a value", line)
	}
	v.Text, v.Null = "", size < 0
	switch v.Kind {
	case '$', '=', '!':
		return v, v.readText(in, size)
	case '*', '~', '>':
	case '%', '|':
		size *= 2
	default:
		return v, fmt.Errorf("redis: a value of an unknown kind: %q", line)
	}
	if v.Null {
		return v, nil
	}
	v.Items = []RedisValue{}
	for range size {
		item, err := ReadRedisValue(in)
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
	return v, nil
}

func (v *RedisValue) readText(in *bufio.Reader, size int) error {
	if v.Null {
		return nil
	}
	var b strings.Builder // grows by what comes: a length costs nothing
	if _, err := io.CopyN(&b, in, int64(size+len("\r\n"))); err != nil {
		return err
	}
	if v.Text = b.String()[:size]; v.Kind == '=' {
		_, v.Text, _ = strings.Cut(v.Text, ":") // the text's format
	}
	return nil
}

// plain is the value as [RedisConn.Do] returns it; an error that the server has answered is a value here.
func (v *RedisValue) plain() (any, error) {
	switch {
	case v.Null:
		return nil, nil //nolint:nilnil // that is what null is
	case v.Kind == ':':
		return strconv.ParseInt(v.Text, 10, 64)
	case v.Kind == '-' || v.Kind == '!':
		return RedisError(v.Text), nil
	case v.Items == nil:
		return v.Text, nil
	}
	all := make([]any, len(v.Items))
	var err error
	for i := range v.Items {
		if all[i], err = v.Items[i].plain(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
