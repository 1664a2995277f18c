package main

import (
	"testing"

	"github.com/interlock-go/interlock/examples/internal/recipe/recipetest"
)

func TestFileImport(t *testing.T) {
	recipetest.Run(t, run, map[string]int{"imported by": 5})
}
