package play

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// zooTalk understands a connection to ZooKeeper.
type zooTalk struct {
	*listener

	requests, replies []byte
	greeted           [2]bool // the session is asked for, and answered
	asked             map[int32]asked
}

// asked is a request that is not answered yet.
type asked struct {
	operation int32
	said      *story.Wire
}

// The operations of ZooKeeper's protocol by the words of its own client.
const (
	zooCreate, zooDelete, zooExists, zooGet, zooSet, zooSync = 1, 2, 3, 4, 5, 9

	zooList, zooListStat, zooCheck, zooMulti, zooCreateStat = 8, 12, 13, 14, 15

	zooContainer, zooTTL, zooWatches, zooClose = 19, 21, 101, -11

	zooWatchFired = -1 // in the place of a request's number
)

var zooOperations = map[int32]string{
	zooCreate: "create", zooDelete: "delete", zooExists: "stat", zooGet: "get", zooSet: "set", zooSync: "sync",
	zooList: "ls", zooListStat: "ls", zooCheck: "check", zooMulti: "multi", zooCreateStat: "create",
	zooContainer: "create -c", zooTTL: "create -t", zooWatches: "the watches of before, once more", zooClose: "close",
}

var zooEvents = map[int32]string{
	1: "created", 2: "deleted", 3: "changed", 4: "children changed",
}

var zooErrors = map[int32]string{
	0: "OK", -101: "NoNode", -102: "NoAuth", -103: "BadVersion", -110: "NodeExists", -111: "NotEmpty",
	-112: "SessionExpired",
}

func (t *zooTalk) asks(b []byte) {
	t.requests = frames(append(t.requests, b...), func(body *jute) {
		if !t.greeted[0] {
			t.greeted[0] = true
			t.heard(false, "connect")
			return
		}
		number, operation := body.number(), body.number()
		name, known := zooOperations[operation]
		if !known {
			return // a ping
		}
		t.asked[number] = asked{operation, t.heard(false, shorten(name+body.operands(operation), longestCommand))}
	})
}

func (t *zooTalk) says(b []byte) {
	t.replies = frames(append(t.replies, b...), func(body *jute) {
		if !t.greeted[1] {
			t.greeted[1] = true
			return
		}
		number := body.number()
		body.skip(8) // the transaction
		failure := body.number()
		if number == zooWatchFired {
			kind := body.number()
			body.skip(4)
			if name, known := zooEvents[kind]; known {
				t.heard(true, "the watch: "+body.text()+" "+name)
			}
			return
		}
		of, known := t.asked[number]
		if !known {
			return
		}
		delete(t.asked, number)
		answer, named := zooErrors[failure]
		if !named {
			answer = fmt.Sprintf("error %d", failure)
		}
		switch {
		case failure != 0:
		case of.operation == zooCreate || of.operation == zooCreateStat:
			answer = body.text()
		case of.operation == zooList || of.operation == zooListStat:
			answer = "[" + strings.Join(body.texts(), ", ") + "]"
		}
		t.answered(of.said, shorten(answer, longestAnswer))
	})
}

// frames calls f for each whole message, and returns the rest.
func frames(b []byte, f func(body *jute)) []byte {
	for len(b) >= 4 {
		size := int(binary.BigEndian.Uint32(b))
		if size > mostPacket {
			return nil // something else
		}
		if len(b) < 4+size {
			return b
		}
		f(&jute{b[4 : 4+size]})
		b = b[4+size:]
	}
	return b
}

// jute reads the fields of a message. What is not there is zero.
type jute struct{ b []byte }

func (j *jute) skip(n int) { j.b = j.b[min(max(n, 0), len(j.b)):] }

func (j *jute) number() int32 {
	if len(j.b) < 4 {
		j.b = nil
		return 0
	}
	n := int32(binary.BigEndian.Uint32(j.b)) //nolint:gosec // it is signed
	j.skip(4)
	return n
}

func (j *jute) flag() bool {
	set := len(j.b) > 0 && j.b[0] == 1
	j.skip(1)
	return set
}

func (j *jute) text() string {
	n := int(j.number())
	n = min(max(n, 0), len(j.b)) // -1 is none
	s := string(j.b[:n])
	j.skip(n)
	return s
}

func (j *jute) texts() []string {
	var all []string
	for range min(max(int(j.number()), 0), len(j.b)) {
		all = append(all, j.text())
	}
	return all
}

// operands are what an operation is about, as ZooKeeper's own client writes it.
func (j *jute) operands(operation int32) string {
	switch operation {
	case zooCreate, zooCreateStat, zooContainer, zooTTL:
		return j.creation()
	case zooExists, zooGet, zooList, zooListStat:
		path := j.text()
		if j.flag() {
			return " -w " + path
		}
		return " " + path
	case zooDelete, zooCheck:
		path := j.text()
		return version(" "+path, j.number())
	case zooSet:
		path, data := j.text(), j.text()
		return version(" "+path+" "+quoted([]string{data}), j.number())
	case zooSync:
		return " " + j.text()
	case zooMulti:
		var all []string
		for len(j.b) >= 9 {
			kind := j.number()
			if done := j.flag(); done {
				break
			}
			j.skip(4) // a failure, in answers
			all = append(all, zooOperations[kind]+j.operands(kind))
		}
		return " {" + strings.Join(all, "; ") + "}"
	default:
		return ""
	}
}

// creation is what a node is made of.
func (j *jute) creation() string {
	path, data := j.text(), j.text()
	for range min(max(int(j.number()), 0), len(j.b)) { // who may do what
		j.skip(4)
		_, _ = j.text(), j.text()
	}
	flags, words := j.number(), ""
	if flags&1 != 0 {
		words += " -e"
	}
	if flags&2 != 0 {
		words += " -s"
	}
	words += " " + path
	if data != "" {
		words += " " + quoted([]string{data})
	}
	return words
}

// version adds the version that a node has to have; -1 is any.
func version(words string, n int32) string {
	if n >= 0 {
		return fmt.Sprintf("%s -v %d", words, n)
	}
	return words
}
