package redislock

import "strconv"

// appendCall appends the command that runs a script, by its source or by its name.
func appendCall(b []byte, c *Call, source bool) []byte {
	b = appendCount(b, '*', 3+len(c.Keys)+len(c.Args))
	if source {
		b = appendText(b, "EVAL")
		b = appendText(b, c.Script.Source())
	} else {
		b = append(b, "$7\r\nEVALSHA\r\n"...)
		b = appendText(b, c.Script.SHA())
	}
	var digits [20]byte
	b = appendText(b, strconv.AppendInt(digits[:0], int64(len(c.Keys)), 10))
	for _, key := range c.Keys {
		b = appendText(b, key)
	}
	for _, arg := range c.Args {
		b = appendText(b, arg)
	}
	return b
}

// callRoom is about how many bytes appendCall appends: not fewer, unless it names the script by its source.
func callRoom(c *Call) int {
	const head, each = 96, 16 // of the command, and of each text: its length and the ends of two lines
	n := head + each*(len(c.Keys)+len(c.Args))
	for _, key := range c.Keys {
		n += len(key)
	}
	for _, arg := range c.Args {
		n += len(arg)
	}
	return n
}

// appendCommand appends a command.
func appendCommand(b []byte, args ...string) []byte {
	b = appendCount(b, '*', len(args))
	for _, arg := range args {
		b = appendText(b, arg)
	}
	return b
}

func appendCount(b []byte, kind byte, n int) []byte {
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, "\r\n"...)
}

func appendText[T string | []byte](b []byte, text T) []byte {
	b = append(appendCount(b, '$', len(text)), text...)
	return append(b, "\r\n"...)
}
