//go:build !linux

package resp

// rawIO is for Linux alone: elsewhere system calls must not be made by hand. newRawIO returns nil, so the methods are
// never called.
type rawIO struct{}

func newRawIO(any) *rawIO { return nil }

func (*rawIO) read([]byte) (int, error)  { panic("there is none") }
func (*rawIO) write([]byte) (int, error) { panic("there is none") }
