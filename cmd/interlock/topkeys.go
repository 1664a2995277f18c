// Keys of a terminal: read in a goroutine that can be ended, and made into the words that topmodel.go knows. top.go
// decides when nothing more comes. A deadline for the read would be simpler, but stdin has none: it is not in the
// poller of Go's runtime. terminfo is not asked: a small container lacks that database, and most terminals send what
// xterm sends.

package main

import (
	"errors"
	"os"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Keys that are no characters.
const (
	keyUp        = "up"
	keyDown      = "down"
	keyPageUp    = "page up"
	keyPageDown  = "page down"
	keyHome      = "home"
	keyEnd       = "end"
	keyEnter     = "enter"
	keyEscape    = "escape"
	keyBackspace = "backspace"
)

// sequences are what terminals send for them, after the escape character: as xterm, the Linux console and rxvt do.
var sequences = map[string]string{
	"[A": keyUp, "OA": keyUp, "[B": keyDown, "OB": keyDown, "[5~": keyPageUp, "[6~": keyPageDown, "[H": keyHome,
	"OH": keyHome, "[1~": keyHome, "[7~": keyHome, "[F": keyEnd, "OF": keyEnd, "[4~": keyEnd, "[8~": keyEnd,
}

// escape begins a sequence, and is a key by itself.
const escape = '\x1b'

// parseKeys returns the keys that a terminal has sent, and what may be the beginning of one more. With last, nothing
// more comes: then an escape character alone is the key of that name. Sequences of other keys are left out, so that
// their characters are not taken for typed ones.
//
// A read may end in the middle of a sequence, also over a fast line. What is left is put in front of the next read.
func parseKeys(sent string, last bool) (keys []string, rest string) {
	for len(sent) > 0 {
		k, size := parseKey(sent, last)
		if size == 0 {
			return keys, sent
		}
		if k != "" {
			keys = append(keys, k)
		}
		sent = sent[size:]
	}
	return keys, ""
}

// parseKey returns the first key and its size, which is 0 if more has to come. An empty key of some size is skipped.
//
// Bytes that are no UTF-8 are skipped one by one, as a terminal with another encoding sends them.
func parseKey(sent string, last bool) (key string, size int) {
	switch c := sent[0]; {
	case c == escape:
		return parseEscape(sent, last)
	case c == '\r' || c == '\n':
		return keyEnter, 1
	// Terminals differ in which of the two the key sends.
	case c == '\x7f' || c == '\b':
		return keyBackspace, 1
	case c < utf8.RuneSelf:
		if !isCharacter(sent[:1]) {
			return "", 1
		}
		return sent[:1], 1
	}
	// A character of several bytes may come in two reads.
	if !utf8.FullRuneInString(sent) && !last {
		return "", 0
	}
	r, size := utf8.DecodeRuneInString(sent)
	if r == utf8.RuneError {
		return "", size
	}
	return sent[:size], size
}

// parseEscape parses what begins with an escape character.
//
// There are two families, as ECMA-48 has them: CSI with "[", whose end is told by its last character, and SS3 with "O",
// which is followed by one.
func parseEscape(sent string, last bool) (key string, size int) {
	if len(sent) == 1 {
		if last {
			return keyEscape, 1
		}
		return "", 0
	}
	switch sent[1] {
	case 'O': // one character follows
		size = 3
	case '[': // parameters, and one character that is none
		size = 2
		for size < len(sent) && sent[size] >= ' ' && sent[size] <= '?' {
			size++
		}
		size++
	default:
		return keyEscape, 1 // somebody typed quickly, or held Alt
	}
	// A sequence that never ends would hold up every key behind it.
	if size > len(sent) {
		if last || size > maxSequence {
			return "", len(sent)
		}
		return "", 0
	}
	return sequences[sent[1:size]], size
}

// maxSequence is longer than any sequence that a terminal sends for a key, in bytes.
const maxSequence = 32

// isCharacter reports whether a key is a character that can be typed into a text.
func isCharacter(k string) bool {
	r, size := utf8.DecodeRuneInString(k)
	return size == len(k) && size > 0 && r != utf8.RuneError && !unicode.IsControl(r)
}

// readKeys returns what a terminal sends, and closes the channel when it has vanished. stop ends that, and must be
// called: what is typed after it is for the next program.
//
// A pipe ends the wait: closing its writing end makes the other readable. A signal would not do, because the runtime's
// own signals interrupt select too.
func readKeys(in *os.File) (typed <-chan string, stop func(), err error) {
	ended, end, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	// Without a buffer, at most one read is ahead of the loop: what is typed later stays for the next program.
	ch, quit := make(chan string), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { // ends by stop, or when the terminal has vanished
		defer close(ch)
		buffer := make([]byte, 1024)
		for readable(int(in.Fd()), int(ended.Fd())) {
			n, err := in.Read(buffer)
			if err != nil || n == 0 {
				return
			}
			select {
			case ch <- string(buffer[:n]):
			case <-quit:
				return
			}
		}
	})
	return ch, func() {
		close(quit)
		end.Close()
		reader.Wait()
		ended.Close()
	}, nil
}

// readable waits until there is something to read from fd, and returns false when end can be read, which closing its
// other side brings about. A read from a terminal cannot be called off, so none is begun before something is there. (On
// macOS poll does not know terminals; select does.)
//
// EINTR is usual: the runtime preempts goroutines by a signal, and the kernel never restarts select.
func readable(fd, end int) bool {
	for {
		var set unix.FdSet
		set.Zero()
		set.Set(fd)
		set.Set(end)
		_, err := unix.Select(max(fd, end)+1, &set, nil, nil, nil)
		if err == nil {
			return !set.IsSet(end)
		}
		if !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}
