package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestRate(t *testing.T) {
	recipetest.Run(t, run, map[string]int{"12 calls of 4 hosts, at most 3 at once": 1})
}
