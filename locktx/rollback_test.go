package locktx

import (
	"context"
	"testing"
	"time"
)

// The answer to a ROLLBACK comes at the very instant at which the wait for it ends. It counts, and frees the lock.
func TestRollback_WhoseAnswerComesTogetherWithTheEnd_TakesTheAnswer(t *testing.T) {
	past := make(chan time.Time)
	close(past)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, end := range map[string]func(tx *Tx, said <-chan answer) (err, lost error){
		"of its context": func(tx *Tx, said <-chan answer) (err, lost error) { return tx.rolledBack(ended, said, nil) },
		"of patience": func(tx *Tx, said <-chan answer) (err, lost error) {
			return tx.rolledBack(context.Background(), said, past)
		},
		"of both": func(tx *Tx, said <-chan answer) (err, lost error) { return tx.rolledBack(ended, said, past) },
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, func(t *testing.T, s *stage) {
				for range 50 { // a select would take either
					tx, err := Begin(t.Context(), s.db, nil)
					if err != nil {
						t.Fatal(err)
					}
					l, err := s.m.Lock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					tx.Hold(l)
					said := make(chan answer, 1)
					said <- <-tx.ask(tx.rollbackNow)
					if err, lost := end(tx, said); err != nil || lost != nil {
						t.Fatalf("got %v, %v", err, lost)
					}
				}
			})
		})
	}
}
