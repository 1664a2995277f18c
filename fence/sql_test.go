package fence

import (
	"context"
	"database/sql"
	"strings"
	"testing"
)

// What needs a database is tested in the module itest.

func TestSQLGuard_OfWhatMakesNoSense_SaysSo(t *testing.T) {
	long := strings.Repeat("x", 64)
	for name, test := range map[string]struct {
		g    *SQLGuard
		want string
	}{
		"no dialect":    {NewSQLGuard(0, "fence"), "fence.PostgreSQL"},
		"other dialect": {NewSQLGuard(4, "fence"), "Dialect(4)"},
		"no table":      {NewSQLGuard(MySQL, ""), "empty"},
		"injection":     {NewSQLGuard(MySQL, "fence; DROP TABLE x"), "letters"},
		"quotes":        {NewSQLGuard(PostgreSQL, `fe"nce`), "letters"},
		"digit first":   {NewSQLGuard(SQLite, "1st"), "letters"},
		"long":          {NewSQLGuard(MySQL, long), "63"},
		"three parts":   {NewSQLGuard(MySQL, "a.b.c"), "dots"},
		"empty part":    {NewSQLGuard(MySQL, "a."), "letters"},
		"zero":          {new(SQLGuard), "NewSQLGuard"},
	} {
		t.Run(name, func(t *testing.T) {
			for what, err := range map[string]error{
				"Check":       test.g.Check(t.Context(), new(sql.Tx), "r", writer(1, "a")),
				"CheckBy":     test.g.CheckBy(t.Context(), noRow, "r", writer(1, "a")),
				"CreateTable": test.g.CreateTable(t.Context(), new(sql.DB)),
			} {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got %v, want an error about %q", what, err, test.want)
				}
			}
			if test.g.Schema() != "" {
				t.Errorf("got the schema %s", test.g.Schema())
			}
		})
	}
	g := NewSQLGuard(MySQL, "shop.fence")
	if err := g.Check(t.Context(), nil, "r", writer(1, "a")); err == nil ||
		!strings.Contains(err.Error(), "tx is nil") {
		t.Errorf("got %v", err)
	}
	if err := g.CreateTable(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "db is nil") {
		t.Errorf("got %v", err)
	}
	for resource, s := range map[string]Stamp{"": writer(1, "a"), "r": {}} {
		if err := g.Check(t.Context(), new(sql.Tx), resource, s); err == nil {
			t.Errorf("%q with %v is not refused", resource, s)
		}
	}
}

// noRow is a query function that fails the test if it is called.
func noRow(context.Context, string, ...any) Row { panic("the database was asked") }

func TestSQLGuard_CheckBy_OfWhatMakesNoSense_SaysSo(t *testing.T) {
	for want, err := range map[string]error{
		"queryRow is nil": NewSQLGuard(PostgreSQL, "fence").CheckBy(t.Context(), nil, "r", writer(1, "a")),
		"use Check":       NewSQLGuard(MySQL, "fence").CheckBy(t.Context(), noRow, "r", writer(1, "a")),
		"resource":        NewSQLGuard(PostgreSQL, "fence").CheckBy(t.Context(), noRow, "", writer(1, "a")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
}

func TestSQLGuard_Schema_QuotesTheName(t *testing.T) {
	for d, want := range map[Dialect]string{
		MySQL: "`shop`.`Order`", PostgreSQL: `"shop"."Order"`, SQLite: `"shop"."Order"`,
	} {
		if got := NewSQLGuard(d, "shop.Order").Schema(); !strings.Contains(got, want+" (") {
			t.Errorf("%v: %s", d, got)
		}
	}
}
