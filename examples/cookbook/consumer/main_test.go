package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestConsumer(t *testing.T) {
	recipetest.Run(t, run, map[string]int{" handled by ": 3, "skipped: it was delivered before": 3, "balance: 60": 1})
}
