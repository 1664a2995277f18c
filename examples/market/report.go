package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// published is a row of the article's table: 60 s.
type published struct{ listed, bought, retries, wait string }

// article is the article's table, by way and crowd. It measured its SETNX lock under the name of "one lock".
var article = map[string]map[string]published{
	byWatch: {
		"1/1": {"145,000", "27,000", "8,000 [1]", "14 ms [2]"},
		"5/1": {"331,000", "<200", "5,000 [1]", "150 ms"},
		"5/5": {"206,000", "<600", "161,000", "498 ms"},
	},
	bySetnx: {
		"1/1": {"51,000", "50,000", "0", "1 ms"},
		"5/1": {"68,000", "13,000", "<10", "5 ms"},
		"5/5": {"21,000", "20,500", "0", "14 ms"},
	},
}

const notes = `
[1] As the article prints it. The table in the book that it quotes seems to have 80,000 and 50,000, and a measurement fits
    those.
[2] Cannot be the time of one buyer: 27,000 purchases in 60 s are 2.2 ms each.
gone: purchases of an offer that another had bought since it was picked; the buyer picks another one.
`

// shares is said of rows whose sellers and buyers share a client.
const shares = `The article's sellers and buyers were clients of their own, these share one: a lock passes between them inside the process.
-separate gives each clients of its own.
`

// report prints the rows, the article's beside them, and what follows.
func report(w io.Writer, s settings, rows []row) {
	clients := "one client for all"
	if s.separate {
		clients = "a client for each"
	}
	fmt.Fprintf(w, "%v a row, %s, on %d processors; the article's figures are of 60 s.\n\n",
		s.duration, clients, runtime.NumCPU())
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "sellers/buyers\tway\tlisted\tbought\tretries\tmean wait\tbought/s\tgone\t"+
		"article: listed\tbought\tretries\tmean wait\t")
	for _, r := range rows {
		a := article[r.way][r.crowd.String()]
		fmt.Fprintf(t, "%v\t%s\t%d\t%d\t%d\t%v\t%.0f\t%d\t%s\t%s\t%s\t%s\t\n",
			r.crowd, r.way, r.listed, r.bought, r.retries, short(r.meanWait()), r.perSecond(r.bought), r.gone,
			a.listed, a.bought, a.retries, a.wait)
	}
	_ = t.Flush() // an error of standard output has nowhere to be told
	fmt.Fprint(w, notes)
	if !s.separate {
		fmt.Fprint(w, shares)
	}
	fmt.Fprint(w, ratios(rows))
	fmt.Fprintln(w, "After each row every item was in one place, and no money was lost or made.")
}

func short(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// ratios says what the locks of interlock buy, against what they replace.
func ratios(rows []row) string {
	var b strings.Builder
	for _, pair := range [][2]string{{byItem, byWatch}, {byOneLock, bySetnx}} {
		for _, r := range rows {
			other, found := find(rows, pair[1], r.crowd)
			if r.way != pair[0] || !found || other.bought == 0 {
				continue
			}
			times := r.perSecond(r.bought) / other.perSecond(other.bought)
			fmt.Fprintf(&b, "\n%v: %s buys %.1f times what %s buys%s",
				r.crowd, r.way, times, other.way, goalOf(r, times))
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	return b.String()
}

// goals are how many times as much a way is to buy as what it replaces, without a retry, where the article's table
// shows the largest difference (a lock per item), or with every crowd.
var goals = []struct {
	way, crowd string // crowd "" is every one
	times      float64
}{{byItem, "5/5", 20}, {byOneLock, "", 1.5}}

// goalOf says whether the goal for r is met, if there is one.
func goalOf(r row, times float64) string {
	for _, g := range goals {
		switch {
		case g.way != r.way || g.crowd != "" && g.crowd != r.crowd.String():
		case times < g.times:
			return fmt.Sprintf("; the goal of %v is MISSED", g.times)
		case r.retries > 0:
			return fmt.Sprintf("; the goal of %v without a retry is MISSED by %d retries", g.times, r.retries)
		default:
			return fmt.Sprintf(", without a retry; the goal is %v", g.times)
		}
	}
	return ""
}

func find(rows []row, way string, c crowd) (row, bool) {
	for _, r := range rows {
		if r.way == way && r.crowd == c {
			return r, true
		}
	}
	return row{}, false
}
