package resp

import (
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// pushedMessage is what a server sends to who has subscribed.
const pushedMessage = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"

// answering answers each command that comes over c, until that ends.
func answering(c net.Conn) {
	for b := make([]byte, 1000); ; {
		if _, err := c.Read(b); err != nil {
			return
		}
		if _, err := c.Write([]byte("+PONG\r\n")); err != nil {
			return
		}
	}
}

// Behind each call there is nobody who reads, for a moment: whoever called has its answer.
func TestAttend_WhatIsPushedWhileNobodyWaits_IsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		heard := make(chan struct{}, 10)
		raw := &socket{Conn: near}
		w := newConn(raw, raw, nil, func(string, string, string) { heard <- struct{}{} })
		defer w.Close()
		go answering(far) // ends with the connection
		late := func() time.Duration {
			t.Helper()
			if _, err := w.Do(t.Context(), "PING"); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			go func() { _, _ = far.Write([]byte(pushedMessage)) }() // ends when it is read, or with the connection
			<-heard
			return time.Since(begin)
		}
		for range 3 {
			w.Attend(true)
			for range 3 {
				if took := late(); took > 0 {
					t.Errorf("it is seen after %v, and was to be at once", took)
				}
			}
			w.Attend(false)
			if took := late(); took == 0 {
				t.Error("somebody reads on when nobody wants that any more, and has to be woken for each answer")
			}
		}
	})
}
