// The terminal as a screen, for interlock top: entered, drawn and left. top.go draws on it; screen_linux.go and
// screen_other.go have what systems name differently. The sequences are few, so the light build carries no library for
// screens.

package main

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// screen is a terminal that one program has for itself: its whole area, and each key as it is pressed. Signals stay as
// they are: ^C, ^Z and ^\ send them. It has no mutex; the loop of top alone uses it.
//
// This is not the raw mode of cfmakeraw: ISIG stays on, so ^C works even if the loop hangs.
type screen struct {
	in, out *os.File
	saved   *unix.Termios // how the terminal was before the first enter
	colours bool
	shown   []topLine // what the terminal shows; nil if that is not known
}

// Control sequences of ECMA-48 and xterm. Lines that are too long must not wrap, also if the terminal counts cells in
// another way, so wrapping is off.
const (
	ttyEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J" // the other screen, no cursor, no wrapping, empty
	ttyLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
	ttyClear = "\x1b[2J"
)

// newScreen returns the screen of a terminal, which it leaves as it is.
func newScreen(in, out *os.File, colours bool) (*screen, error) {
	saved, err := unix.IoctlGetTermios(int(in.Fd()), termiosGet)
	if err != nil {
		return nil, fmt.Errorf("the terminal cannot be set: %w", err)
	}
	return &screen{in: in, out: out, saved: saved, colours: colours}, nil
}

// enter takes the terminal. It may be called again after leave, and after something else has had the terminal.
//
// IXON is off so that ^S does not stop the terminal; the others, so that bytes come as they were typed.
func (s *screen) enter() error {
	raw := *s.saved
	raw.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	raw.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR | unix.IXON
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0 // a read returns with the first byte
	if err := unix.IoctlSetTermios(int(s.in.Fd()), termiosSet, &raw); err != nil {
		return fmt.Errorf("the terminal cannot be set: %w", err)
	}
	// Whatever had the terminal meanwhile has drawn on it.
	s.shown = nil
	_, err := s.out.WriteString(ttyEnter)
	return err
}

// leave gives the terminal back as it was. If the terminal has vanished there is nothing to do, so errors are dropped.
//
// The settings come first: should the write block or fail, the shell still finds a terminal that echoes.
func (s *screen) leave() {
	_ = unix.IoctlSetTermios(int(s.in.Fd()), termiosSet, s.saved)
	_, _ = s.out.WriteString(ttyLeave) // now that all is as it was
}

// during runs f with the terminal, which is given back however f ends, also by a panic.
func (s *screen) during(f func() error) error {
	defer s.leave()
	if err := s.enter(); err != nil {
		return err
	}
	return f()
}

// size is how much room there is: 80x24 if the terminal does not know. A serial console often does not know its size.
func (s *screen) size() (width, height int) {
	size, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 80, 24
	}
	return int(size.Col), int(size.Row)
}

// draw shows lines from the top. It sends only those that differ from what is there, in one write: over a slow line, a
// second without news costs a few bytes.
//
// The cursor is moved to each line that is sent, so no line depends on where the one before has ended. The whole screen
// is cleared only when the number of lines changes.
func (s *screen) draw(lines []topLine) error {
	var out bytes.Buffer
	if len(s.shown) != len(lines) {
		out.WriteString(ttyClear)
		s.shown = make([]topLine, len(lines)) // all empty now
	}
	for i, l := range lines {
		if l == s.shown[i] {
			continue
		}
		// The rest of the line is erased after the text and not before: erased first, it would flicker.
		fmt.Fprintf(&out, "\x1b[%d;1H%s\x1b[K", i+1, s.painted(l))
	}
	copy(s.shown, lines)
	if out.Len() == 0 {
		return nil
	}
	_, err := s.out.Write(out.Bytes())
	return err
}

// painted is a line with the sequences that make it stand out. Yellow is the only colour, and bold, so that it can be
// read on white and on black.
func (s *screen) painted(l topLine) string {
	code := map[topStyle]string{
		styleHeader: "1", styleSelected: "7", styleWarning: "1;33", styleDim: "2",
	}[l.style]
	if code == "" || !s.colours || l.text == "" {
		return l.text
	}
	return "\x1b[" + code + "m" + l.text + "\x1b[0m"
}
