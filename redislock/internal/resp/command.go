// The encoding of commands: lists of texts in RESP. call.go, bundle.go and pipeline.go append commands with it.

package resp

import (
	"strconv"

	"github.com/interlock-go/interlock/redislock/conn"
)

// appendCall appends the command that runs a script, by its source or by its name.
func appendCall(b []byte, call *conn.Call, source bool) []byte {
	b = appendCount(b, '*', 3+len(call.Keys)+len(call.Args))
	if source {
		b = appendText(b, "EVAL")
		b = appendText(b, call.Script.Source())
	} else {
		b = append(b, "$7\r\nEVALSHA\r\n"...)
		b = appendText(b, call.Script.SHA())
	}
	// The digits are written to the stack: a number formatted by itself would be one allocation for each call.
	var digits [20]byte
	b = appendText(b, strconv.AppendInt(digits[:0], int64(len(call.Keys)), 10))
	for _, key := range call.Keys {
		b = appendText(b, key)
	}
	for _, arg := range call.Args {
		b = appendText(b, arg)
	}
	return b
}

// callRoom is about how many bytes appendCall appends. It is not less, unless the script is sent by its source.
func callRoom(call *conn.Call) int {
	const head, each = 96, 16 // of the command, and of each text: its length and the ends of two lines
	n := head + each*(len(call.Keys)+len(call.Args))
	for _, key := range call.Keys {
		n += len(key)
	}
	for _, arg := range call.Args {
		n += len(arg)
	}
	return n
}

// appendCommand appends a command of any kind.
func appendCommand(b []byte, args ...string) []byte {
	b = appendCount(b, '*', len(args))
	for _, arg := range args {
		b = appendText(b, arg)
	}
	return b
}

// appendCount appends the head of a list ('*') or of a text ('$').
func appendCount(b []byte, kind byte, n int) []byte {
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, "\r\n"...)
}

// appendText appends one text with its length before it, so it may have any bytes.
func appendText[T string | []byte](b []byte, text T) []byte {
	b = append(appendCount(b, '$', len(text)), text...)
	return append(b, "\r\n"...)
}
