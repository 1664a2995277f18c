// Package d12stock is an exhibit, broken on purpose: a shop's stock in SQL, deducted and corrected as the articles do.
package d12stock

import (
	"context"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Stock is the number of pieces of article 1.
type Stock struct{ DB exhibit.SQL }

// SellChecked reads, checks and writes. Between the first and the last anybody may do the same.
func (s *Stock) SellChecked(ctx context.Context, n int64) (bool, error) {
	have, err := s.DB.Number(ctx, "SELECT number FROM goods WHERE id = 1")
	if err != nil || have < n {
		return false, err
	}
	rows, err := s.DB.Exec(ctx, "UPDATE goods SET number = ? WHERE id = 1", have-n)
	return rows == 1, err
}

// Sell reads and checks too, and then subtracts on a condition, which is the wrong one: it tests the stock before the
// sale, not after.
func (s *Stock) Sell(ctx context.Context, n int64) (bool, error) {
	have, err := s.DB.Number(ctx, "SELECT number FROM goods WHERE id = 1")
	if err != nil || have < n {
		return false, err
	}
	rows, err := s.DB.Exec(ctx, "UPDATE goods SET number = number - ? WHERE id = 1 AND number >= 0", n)
	return rows == 1, err
}

// SubtractAsPrinted is the subtraction as an article writes it.
func (s *Stock) SubtractAsPrinted(ctx context.Context) error {
	_, err := s.DB.Exec(ctx, "UPDATE goods SET number-=10 WHERE id = 1 AND number >= 0")
	return err
}

// Correct is the stocktaking by difference, with the same condition. The article says that it refuses to go below zero.
func (s *Stock) Correct(ctx context.Context, by int64) (bool, error) {
	rows, err := s.DB.Exec(ctx, "UPDATE goods SET number = number + ? WHERE id = 1 AND number >= 0", by)
	return rows == 1, err
}

// SetTo is the stocktaking by value: what was sold since the count comes back.
func (s *Stock) SetTo(ctx context.Context, counted int64) error {
	_, err := s.DB.Exec(ctx, "UPDATE goods SET number = ? WHERE id = 1", counted)
	return err
}
