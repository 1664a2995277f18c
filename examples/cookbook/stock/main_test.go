package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestStock(t *testing.T) {
	recipetest.Run(t, run, map[string]int{"sold 10 of 10": 1, "late is refused": 1})
}
