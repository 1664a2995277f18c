package mysqllock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// diagnosisTime bounds Diagnose: a server that hangs must not hang its clients.
const diagnosisTime = 8 * time.Second

// levels, the worst last.
var levels = []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}

// Diagnose asks the server for its settings and judges what locks depend on: version, cluster, whether it may be written
// to, whether tokens survive a crash, room for connections, who sees the waits, and how long a round trip takes. What
// fails comes first. It changes nothing, and takes some ten round trips.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosisTime)
	defer cancel()
	rows, err := d.ask(ctx, settingsQuery())
	if err != nil {
		return []driver.Finding{{
			Check: "server", Level: driver.LevelFail, Detail: fmt.Sprintf("it does not answer: %v", err),
			Advice: "check the address, the network and the server",
		}}
	}
	settings := settingsOf(rows)
	findings := judge(settings)
	findings = append(findings, d.checkRoom(ctx, settings), d.checkProcess(ctx), d.checkTrip(ctx))
	slices.SortStableFunc(findings, func(a, b driver.Finding) int {
		return slices.Index(levels, b.Level) - slices.Index(levels, a.Level)
	})
	return findings
}

// checkAtStart does with the findings what the options say. It costs no round trip: each new session asks for the settings.
func (d *Driver) checkAtStart(ctx context.Context) error {
	if d.opts.Check == CheckNone {
		return nil
	}
	d.mu.Lock()
	settings := d.settings
	d.mu.Unlock()
	var failed []string
	for _, f := range judge(settings) {
		level := slog.LevelWarn
		switch f.Level {
		case driver.LevelOK:
			continue
		case driver.LevelFail:
			level = slog.LevelError
			failed = append(failed, fmt.Sprintf("%s: %s (%s)", f.Check, f.Detail, f.Advice))
		case driver.LevelWarn:
		}
		d.opts.Logger.Log(ctx, level, "mysql: "+f.Check+": "+f.Detail, "check", f.Check, "advice", f.Advice)
	}
	if d.opts.Check == CheckRefuse && len(failed) > 0 {
		return &setupError{strings.Join(failed, "; ")}
	}
	return nil
}

// setupError is the refusal of a server that is not set up for locks.
type setupError struct{ what string }

// Error says what is wrong and what to do about it.
func (e *setupError) Error() string { return "mysql: the server is not set up for locks: " + e.what }

func settingsQuery() string {
	return "SHOW VARIABLES WHERE Variable_name IN ('" + strings.Join(settingNames, "', '") + "')"
}

func settingsOf(rows []row) map[string]string {
	settings := make(map[string]string, len(rows))
	for _, r := range rows {
		settings[r.text(0)] = r.text(1)
	}
	return settings
}

// trips is how often the time of a round trip is taken.
const trips = 5

// checkTrip measures. A grant is one round trip.
func (d *Driver) checkTrip(ctx context.Context) driver.Finding {
	f := driver.Finding{Check: "round trip", Level: driver.LevelOK}
	best := time.Duration(0)
	for range trips {
		begin := time.Now()
		if _, err := d.ask(ctx, "SELECT 1"); err != nil {
			f.Level, f.Detail = driver.LevelFail, fmt.Sprintf("the server does not answer: %v", err)
			return f
		}
		if took := time.Since(begin); best == 0 || took < best {
			best = took
		}
	}
	f.Detail = fmt.Sprintf("%v, with signs of life each %v", best.Round(time.Microsecond), d.opts.Timeout/3)
	if best > d.opts.Timeout/10 {
		f.Level, f.Advice = driver.LevelWarn, "ask for a longer lease"
	}
	return f
}

// checkRoom compares the connections that there are with those that there may be.
func (d *Driver) checkRoom(ctx context.Context, settings map[string]string) driver.Finding {
	f := driver.Finding{Check: "connections", Level: driver.LevelOK}
	rows, err := d.ask(ctx, "SHOW GLOBAL STATUS LIKE 'Threads_connected'")
	if err != nil || len(rows) != 1 {
		f.Level, f.Detail = driver.LevelWarn, "the server does not tell how many there are"
		return f
	}
	used, most := rows[0].uint(1), numberIn(settings["max_connections"])
	f.Detail = fmt.Sprintf("%d of %d are in use; this client opens up to %d", used, most, d.opts.Shared+d.opts.Waits)
	if most > 0 && used+uint64(d.opts.Shared+d.opts.Waits) > most {
		f.Level, f.Advice = driver.LevelWarn, "raise max_connections, or set fewer waits: beyond that, waits ask again and again"
	}
	return f
}

// checkProcess looks whether the waits of other users are seen.
func (d *Driver) checkProcess(ctx context.Context) driver.Finding {
	f := driver.Finding{Check: "waiters", Level: driver.LevelOK, Detail: "the waits of all users can be listed"}
	rows, err := d.ask(ctx, "SHOW GRANTS")
	for _, r := range rows {
		if text := r.text(0); strings.Contains(text, " ON *.*") && (strings.Contains(text, "PROCESS") || strings.Contains(text, "ALL PRIVILEGES")) {
			return f
		}
	}
	f.Detail = "only the waits of clients with the same user can be listed"
	if err != nil {
		f.Detail = fmt.Sprintf("the user's rights cannot be read: %v", err)
	}
	f.Advice = "grant PROCESS to see all"
	return f
}
