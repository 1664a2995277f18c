package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestHandler(t *testing.T) {
	recipetest.Run(t, run, map[string]int{": 409\n": 1, ": 503\n": 1, ": 200\n": 2})
}
