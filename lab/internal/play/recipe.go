package play

import (
	"context"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/exhibit/d17queue"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// zooWords are the words of an exhibit about ZooKeeper that are no commands, in Chinese.
var zooWords = strings.NewReplacer("it exists already", "已经存在", "it is there", "节点还在", "it is gone", "节点已消失",
	"the watch", "监视", " is gone", " 已消失", "created", "已创建")

// ZooSaid is a command to ZooKeeper and its answer as a story tells them, and which of the two it is about: a watch is
// a message that nobody asked for at the time.
func ZooSaid(command, answer string) (text story.Text, way story.Way) {
	way = story.Both
	if command == "the watch" {
		way = story.Reply
	}
	if answer != "" {
		command += "  →  " + answer
	}
	return story.Text{EN: command, ZH: zooWords.Replace(command)}, way
}

// Session has the process open a session with ZooKeeper, for the recipe of the exhibit: a lock below dir.
func (c *Process) Session(server *ZooKeeper, dir string, timeout time.Duration) {
	c.p.Helper()
	c.lock = dir
	c.must(&order{Do: "session", URL: server.Addr(), Lease: timeout.Milliseconds()})
}

// Enter takes the lock by the recipe: it is free.
func (c *Process) Enter() {
	c.p.Helper()
	c.send(&order{Do: "enter", Wait: patience.Milliseconds()})
	c.Entered()
}

// BeginEnter begins to wait for the lock by the recipe; Entered waits for its turn.
func (c *Process) BeginEnter() {
	c.p.Helper()
	c.send(&order{Do: "enter", Wait: patience.Milliseconds()})
	select {
	case <-c.queues:
	case r := <-c.answers:
		c.p.Fatalf("%s does not wait: %+v", c.name, *r)
	case <-time.After(patience):
		c.p.Fatalf("%s never came into the queue", c.name)
	}
	c.p.set(c.name, story.Waits)
}

// Entered waits until the process has the lock. Its token is the number of the transaction that made its node.
func (c *Process) Entered() {
	c.p.Helper()
	r := c.answer()
	if !r.OK {
		c.p.Fatalf("%s cannot take the lock: %s", c.name, r.Why)
	}
	c.stamp = fence.Stamp{Token: r.Token, Nonce: r.Nonce}
	c.p.said(c.name, story.T("stat %s  →  czxid %s", "stat %s  →  czxid %s", r.Node, c.p.Token(r.Token)), toZooKeeper)
	c.p.set(c.name, story.Holds)
	c.Says("has got it, and begins to work.", "拿到了锁，开始干活。")
}

// Leaves deletes the process's node.
func (c *Process) Leaves() {
	c.p.Helper()
	c.p.set(c.name, story.Idle)
	c.Says("is done.", "干完了。")
	c.must(&order{Do: "exit"})
}

// LooksForItsNode has the process ask, at last, whether its node is there, and reports that.
func (c *Process) LooksForItsNode() bool {
	c.p.Helper()
	r := c.must(&order{Do: "node"})
	answer := "it is gone"
	if r.N == 1 {
		answer = "it is there"
	}
	text, _ := ZooSaid("stat "+r.Node, answer)
	if r.N == 0 {
		c.p.set(c.name, story.Idle)
	}
	c.p.said(c.name, text, toZooKeeper)
	return r.N == 1
}

var toZooKeeper = &story.Message{To: "ZooKeeper", Way: story.Both}

// recipe is a process's lock by the recipe of the exhibit.
type recipe struct {
	conn *zk.Conn
	lock *d17queue.Lock
}

// followRecipe carries out one order about the recipe.
func (s *server) followRecipe(ctx context.Context, o *order) *report {
	var err error
	r := &report{OK: true}
	switch l := s.recipe.lock; o.Do {
	case "session":
		err = s.openSession(o)
	case "enter":
		if err = l.Lock(ctx); err == nil {
			r.Node, r.Nonce = l.Node(), l.Node()
			r.Token, err = s.recipe.created()
		}
		s.goods.stamp = fence.Stamp{Token: r.Token, Nonce: r.Nonce}
	case "node":
		r.Node = l.Node()
		r.N, err = s.recipe.looks()
	case "exit":
		err = l.Unlock()
	}
	if err != nil {
		return said(err)
	}
	return r
}

// openSession opens the session. Its end is told to a channel that nobody reads, as in a program that does without.
func (s *server) openSession(o *order) error {
	conn, _, err := zk.Connect([]string{o.URL}, time.Duration(o.Lease)*time.Millisecond, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	s.recipe = recipe{conn, &d17queue.Lock{
		Conn: conn, Dir: o.Name,
		Tell:     func(command, answer string) { s.send(&report{Command: command, Answer: answer}) },
		Watching: func() { s.send(&report{Queues: true}) },
	}}
	return nil
}

// created returns the number of the transaction that made the process's node. It grows from one node to the next.
func (r *recipe) created() (uint64, error) {
	there, stat, err := r.conn.Exists(r.lock.Node())
	if err == nil && !there {
		err = zk.ErrNoNode
	}
	if err != nil {
		return 0, err
	}
	return uint64(stat.Czxid), nil //nolint:gosec // it is positive
}

// looks returns 1 if the process's node is there. After a long stop the library has to connect first, and says no
// before.
func (r *recipe) looks() (int64, error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		there, _, err := r.conn.Exists(r.lock.Node())
		switch {
		case err != nil:
		case there:
			return 1, nil
		default:
			return 0, nil
		}
	}
	return 0, zk.ErrNoServer
}
