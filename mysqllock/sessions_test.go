package mysqllock

import (
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// A session that waits has prepared what its turn needs when it is given out: the next ones wait while it says that.
func TestSessionThatWaits_HasPreparedWhatItsTurnNeeds(t *testing.T) {
	d := open(patient(t), t, sharedServer(t).Addr(), Options{})
	defer func() { _ = d.Close() }()
	c, err := dialect{d}.Dial(patient(t), true)
	if err != nil {
		t.Fatal(err)
	}
	word := make(chan string, 1)
	c.Submit(sqlsession.Job{
		Run:  func(c *sqlsession.Conn) { word <- session(c).turn() },
		Dead: func(err error) { word <- err.Error() },
	})
	if got, want := <-word, "2 before and 2 after"; got != want {
		t.Errorf("statements that were prepared: %s its turn, want %s", got, want)
	}
}

// turn takes a lock and gives it back, and tells how many statements the session had prepared before and after.
func (s *speaker) turn() string {
	prepared := func() string {
		rows, err := s.query("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'")
		if err != nil || len(rows) != 1 {
			return fmt.Sprint(rows, err)
		}
		return rows[0].text(1)
	}
	const name = "a turn"
	before := prepared()
	if err := s.run("DO GET_LOCK('" + name + "', 0)"); err != nil {
		return err.Error()
	}
	if had, err := s.unlock(name); err != nil || !had {
		return fmt.Sprint(had, err)
	}
	return before + " before and " + prepared() + " after"
}
