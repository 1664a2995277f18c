package resp

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"testing"
)

// fakeServer speaks RESP3 and answers all but HELLO as it is told to. Without that it is one that does not know HELLO.
func fakeServer(t *testing.T, answer func(c net.Conn, args []string) error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					args, err := readCommand(r)
					switch {
					case err != nil:
					case answer == nil:
						_, err = fmt.Fprintf(c, "-ERR unknown command, with args beginning with: %q\r\n", args)
					case args[0] == "HELLO":
						_, err = c.Write([]byte("%2\r\n+proto\r\n:3\r\n+role\r\n+master\r\n"))
					default:
						err = answer(c, args)
					}
					if err != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}

// readCommand reads one command.
func readCommand(r *bufio.Reader) (args []string, err error) {
	var n, size int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		for i := range b {
			if b[i], err = r.ReadByte(); err != nil {
				return nil, err
			}
		}
		args = append(args, string(b[:size]))
	}
	return args, nil
}
