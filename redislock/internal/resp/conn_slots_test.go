package resp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/redislock/conn"
)

// A node that loses a slot ends its subscriptions unasked. If we end one in the same moment the node refuses
// that afterwards, and the refusal is nobody's answer: taken for one, each call after it would get the
// answer of the call before.
func TestConn_OfANodeThatLosesASlot_GivesNobodyTheAnswerOfAnother(t *testing.T) {
	for name, refusal := range map[string]string{
		"moved": "-MOVED 7 127.0.0.1:7001\r\n", "down": "-CLUSTERDOWN Hash slot not served\r\n", "confirmed": "",
	} {
		t.Run(name, func(t *testing.T) {
			addr := fakeServer(t, func(c net.Conn, args []string) error {
				text := args[len(args)-1]
				said := fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
				if args[0] == "sunsubscribe" {
					said = ">3\r\n$12\r\nsunsubscribe\r\n+c\r\n:0\r\n" + refusal
				}
				_, err := c.Write([]byte(said))
				return err
			})
			w := start(t, addr, func(string, string, string) {})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var all sync.WaitGroup
			all.Go(func() {
				if err := w.Subscribe(ctx, "sunsubscribe", "c"); err != nil {
					t.Errorf("sunsubscribe: %v", err)
				}
			})
			for i := range 20 {
				all.Go(func() {
					want := fmt.Sprint("answer ", i)
					got, err := w.Do(ctx, "ECHO", want)
					if err == nil && got != want {
						t.Errorf("%q for %q", got, want)
					}
					if err != nil &&
						(refusal == "" ||
							!errors.Is(err, ErrBroken) && !errors.Is(err, conn.ErrUnsent) && !isRefused(err)) {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	}
}
