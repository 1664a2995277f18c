package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestSaga(t *testing.T) {
	recipetest.Run(t, run, map[string]int{
		"reserve done": 1, "charge done": 1, "ship done": 1, "charged once": 1, "worker-1 is refused": 1,
	})
}
