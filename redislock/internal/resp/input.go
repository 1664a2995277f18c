// The buffer of what was read. read.go reads into it and takes messages out; message.go finds where they end.

package resp

import "bytes"

// input is what was read and not yet handed out. Only the reader uses it, without the Conn's mu.
type input struct {
	buf        []byte
	start, end int // the unread part of buf
	scan       scanner
	// The kind and channel of the last push. The next push often has the same, and then needs no new strings.
	kind    string
	channel string // which the next one often shares
}

// space returns where to read to: at least 1024 bytes behind what is unread. It grows the buffer for a message that is
// not whole yet, and gives a very large one back when it is empty.
func (in *input) space() []byte {
	if in.start == in.end {
		in.start, in.end = 0, 0
		if in.buf == nil || len(in.buf) > largestKept {
			in.buf = make([]byte, 4096)
		}
	}
	if len(in.buf)-in.end >= 1024 {
		return in.buf[in.end:]
	}
	// What is unread moves to the front, of a larger buffer if it takes more than half of this one.
	to := in.buf
	if in.end-in.start > len(in.buf)/2 {
		to = make([]byte, 2*len(in.buf))
	}
	in.end = copy(to, in.buf[in.start:in.end])
	in.start, in.buf = 0, to
	return in.buf[in.end:]
}

// next returns the next whole message, or nil. The bytes are valid until the next call of space.
func (in *input) next() ([]byte, error) {
	n, err := in.scan.message(in.buf[in.start:in.end])
	if n == 0 {
		return nil, err
	}
	m := in.buf[in.start : in.start+n]
	in.start += n
	return skipAttributes(m), nil
}

// push reads a push: a message to a channel, or the confirmation of a subscription. Of any other push only the kind is
// read.
func (in *input) push(m []byte) (kind, channel, message string, err error) {
	var parts [3][]byte
	n, rest, err := decodeHeader(m)
	for i := 0; i < min(n, len(parts)) && err == nil; i++ {
		parts[i], rest, err = decodeBulk(rest) // fails at a number or a list, which are not needed
	}
	if parts[0] == nil {
		return "", "", "", errProtocol
	}
	if string(parts[0]) != in.kind {
		in.kind = string(parts[0])
	}
	if !bytes.Equal(parts[1], []byte(in.channel)) {
		in.channel = string(parts[1])
	}
	return in.kind, in.channel, string(parts[2]), nil
}
