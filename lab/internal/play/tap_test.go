package play

import (
	"crypto/sha1" //nolint:gosec // the name of a script on a server
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// overhear returns what is written down of a talk with a server, of which the bytes come one by one. Words of the
// client begin with >, those of the server with <.
func overhear(t *testing.T, to string, words ...string) []string {
	t.Helper()
	p := New(t.Context(), t, "T", story.Same(""), story.Same(""))
	p.Sound("x", "x")
	l := &listener{p: p, act: p.now(), who: "A", to: to}
	talk := l.listen()
	for _, word := range words {
		for i := 1; i < len(word); i++ {
			if word[0] == '>' {
				talk.asks([]byte{word[i]})
			} else {
				talk.says([]byte{word[i]})
			}
		}
	}
	var all []string
	for _, w := range p.Story().Acts[0].Wire {
		all = append(all, w.Line().EN)
	}
	return all
}

func TestTap_UnderstandsRedis(t *testing.T) {
	const source = "-- clock: x\n-- renew: makes it last\nreturn redis.call('TIME')"
	sum := sha1.Sum([]byte(source)) //nolint:gosec // see the import
	sha := hex.EncodeToString(sum[:])
	got := overhear(t, "Redis",
		">*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", "<%1\r\n$5\r\nproto\r\n:3\r\n",
		">*3\r\n$7\r\nEVALSHA\r\n$40\r\n"+sha+"\r\n$1\r\n0\r\n", "<-NOSCRIPT x\r\n",
		">*3\r\n$4\r\nEVAL\r\n$"+strconv.Itoa(len(source))+"\r\n"+source+"\r\n$1\r\n0\r\n",
		"<*3\r\n$1\r\nG\r\n:12\r\n_\r\n",
		">*3\r\n$7\r\nEVALSHA\r\n$40\r\n"+strings.Repeat("0", 40)+"\r\n$1\r\n0\r\n*1\r\n$4\r\nPING\r\n",
		"<-NOSCRIPT No matching script.\r\n", "<=8\r\ntxt:PONG\r\n",
		">*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n", "<>3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
		"<>3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\na\x00b\r\n",
		">*2\r\n$3\r\nGET\r\n$0\r\n\r\n", "<$-1\r\n",
		"<?nonsense\r\n", ">*1\r\n$4\r\nPING\r\n",
	)
	want := []string{
		"A → Redis: HELLO 3  →  [proto, 3]",
		"A → Redis: EVALSHA <renew> 0  →  NOSCRIPT x",
		"A → Redis: EVAL <renew> 0  →  [G, 12, (nil)]",
		"A → Redis: EVALSHA <00000000…> 0  →  NOSCRIPT No matching script.",
		"A → Redis: PING  →  PONG",
		"A → Redis: SUBSCRIBE c  →  [subscribe, c, 1]",
		`A ← Redis: message c "a\x00b"`,
		`A → Redis: GET ""  →  (nil)`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("it hears\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTap_UnderstandsMariaDB(t *testing.T) {
	packet := func(number byte, body string) string {
		return string([]byte{byte(len(body)), 0, 0, number}) + body
	}
	got := overhear(t, "MariaDB",
		"<"+packet(0, "\x0a greeting"), ">"+packet(1, "\x03user"), "<"+packet(2, "\x00\x00"),
		">"+packet(0, "\x03SELECT\n  1"), "<"+packet(1, "\x01"),
		">"+packet(0, "\x16UPDATE t SET a = ?, b = ?, c = ?"), "<"+packet(1, "\x00\x07\x00\x00\x00 rest"),
		">"+packet(0, "\x17\x07\x00\x00\x00\x00\x01\x00\x00\x00\x04\x01\x08\x00\xfd\x00\x08\x00"+
			"\x05\x00\x00\x00\x00\x00\x00\x00\x02xy"),
		"<"+packet(1, "\x00\x02"),
		">"+packet(0, "\x03COMMIT"), "<"+packet(1, "\xff\x00\x00#HY000no"),
	)
	want := []string{
		"A → MariaDB: SELECT 1  →  a result",
		"A → MariaDB: UPDATE t SET a = 5, b = 'xy', c = NULL  →  rows: 2",
		"A → MariaDB: COMMIT  →  no",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it hears\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTap_UnderstandsZooKeeper(t *testing.T) {
	number := func(n int32) string {
		return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	}
	text := func(s string) string { return number(int32(len(s))) + s }
	frame := func(parts ...string) string { return text(strings.Join(parts, "")) }
	transaction := strings.Repeat("\x00", 8)
	create := text("/a/n-") + text("data") + number(1) + number(31) + text("world") + text("anyone") + number(3)
	got := overhear(t, "ZooKeeper",
		">"+frame("hello"), "<"+frame("session"),
		">"+frame(number(1), number(1), create), "<"+frame(number(1), transaction, number(0), text("/a/n-7")),
		">"+frame(number(2), number(12), text("/a"), "\x00"),
		">"+frame(number(3), number(3), text("/a/n-6"), "\x01"),
		"<"+frame(number(2), transaction, number(0), number(2), text("n-6"), text("n-7")),
		"<"+frame(number(3), transaction, number(-101)),
		">"+frame(number(-2), number(11)), "<"+frame(number(-2), transaction, number(0)),
		"<"+frame(number(-1), transaction, number(0), number(2), number(3), text("/a/n-6")),
		">"+frame(number(4), number(14), number(13), "\x00", number(-1), text("/b"), number(4),
			number(2), "\x00", number(-1), text("/a/n-7"), number(-1), number(-1), "\x01", number(-1)),
		"<"+frame(number(4), transaction, number(0)),
	)
	want := []string{
		"A → ZooKeeper: connect",
		"A → ZooKeeper: create -e -s /a/n- data  →  /a/n-7",
		"A → ZooKeeper: ls /a  →  [n-6, n-7]",
		"A → ZooKeeper: stat -w /a/n-6  →  NoNode",
		"A ← ZooKeeper: the watch: /a/n-6 deleted",
		"A → ZooKeeper: multi {check /b -v 4; delete /a/n-7}  →  OK",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it hears\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTap_HearsTheProcessesOfAnAct_AndNoExhibit(t *testing.T) {
	p := New(t.Context(), t, "T", story.Same(""), story.Same(""))
	p.Act("x", "x")
	server := p.Redis()
	p.Process("A", server.URL(), "k", time.Minute).Lock()
	p.Sound("x", "x")
	server.Ask("FLUSHALL")
	b, c := p.Process("B", server.URL(), "k", time.Minute), p.Process("C", server.URL(), "k", time.Minute)
	b.Lock()
	c.BeginLock()
	b.Unlock()
	c.Granted()
	p.Sound("later", "later")
	c.Unlock()

	acts := p.Story().Acts
	if len(acts[0].Wire)+len(acts[2].Wire) > 0 {
		t.Errorf("of the others it has %d and %d lines", len(acts[0].Wire), len(acts[2].Wire))
	}
	var all strings.Builder
	for _, w := range acts[1].Wire {
		all.WriteString(w.Line().EN + "\n")
	}
	for _, part := range []string{
		"B → Redis: HELLO 3", "<acquire> 3 interlock:mutex:k ", "B → Redis: EVAL", "<release> 3 interlock:mutex:k ",
		"C ← Redis: message interlock:push:",
	} {
		if !strings.Contains(all.String(), part) {
			t.Errorf("it has no %q:\n%s", part, &all)
		}
	}
	if strings.Contains(all.String(), "redis.call") {
		t.Errorf("scripts have no names:\n%s", &all)
	}
}
