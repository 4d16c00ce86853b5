package warm_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socialweb-computer/tenant-executor/executor/warm"
)

func TestWanted(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy warm.Policy
		jobs   int
		want   int
	}{
		{"nothing asked", warm.Policy{}, 5, 0},
		{"idle count alone", warm.Policy{IdleCount: 3}, 0, 3},
		{"idle count does not grow with jobs", warm.Policy{IdleCount: 3}, 10, 3},
		{"factor, rounded up", warm.Policy{ScaleFactor: 0.3}, 5, 2},
		{"factor without jobs", warm.Policy{ScaleFactor: 2}, 0, 0},
		{"the greater of both: count", warm.Policy{IdleCount: 3, ScaleFactor: 0.5}, 4, 3},
		{"the greater of both: factor", warm.Policy{IdleCount: 3, ScaleFactor: 1}, 4, 4},
		{"limit holds the factor", warm.Policy{ScaleFactor: 2, ScaleFactorLimit: 5}, 10, 5},
		{"limit does not hold the count", warm.Policy{IdleCount: 7, ScaleFactor: 2, ScaleFactorLimit: 5}, 10, 7},
		{"beyond all reason", warm.Policy{ScaleFactor: 1e300}, 10, math.MaxInt32},
	} {
		if got := test.policy.Wanted(test.jobs); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func at(text string) time.Time {
	parsed, err := time.Parse("2006-01-02 15:04:05 MST", text)
	if err != nil {
		panic(err)
	}
	return parsed
}

func compile(t *testing.T, list ...warm.Policy) warm.Policies {
	t.Helper()
	p, err := warm.Compile(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// 2026-11-30 is a Monday.
func TestPeriods(t *testing.T) {
	office := warm.Policy{Periods: []string{"* 8-17 * * mon-fri"}, Timezone: "UTC", IdleCount: 5}
	berlin := office
	berlin.Timezone = "Europe/Berlin"
	twice := warm.Policy{Periods: []string{"* 8-11 * * *", "30 14 * * *"}, Timezone: "UTC", IdleCount: 5}
	for _, test := range []struct {
		name   string
		policy warm.Policy
		now    string
		want   bool
	}{
		{"Monday morning", office, "2026-11-30 10:00:00 UTC", true},
		{"within a minute", office, "2026-11-30 10:00:59 UTC", true},
		{"first second", office, "2026-11-30 08:00:00 UTC", true},
		{"last second", office, "2026-11-30 17:59:59 UTC", true},
		{"a second late", office, "2026-11-30 18:00:00 UTC", false},
		{"a second early", office, "2026-11-30 07:59:59 UTC", false},
		{"Saturday", office, "2026-11-28 10:00:00 UTC", false},
		{"Berlin is ahead", berlin, "2026-11-30 07:30:00 UTC", true},
		{"Berlin is done", berlin, "2026-11-30 17:30:00 UTC", false},
		{"Berlin in summer", berlin, "2026-06-01 06:30:00 UTC", true},
		{"first of two periods", twice, "2026-11-30 11:59:00 UTC", true},
		{"second of two periods", twice, "2026-11-30 14:30:20 UTC", true},
		{"between them", twice, "2026-11-30 14:31:00 UTC", false},
		{"no period is always", warm.Policy{IdleCount: 5}, "2026-11-28 03:00:00 UTC", true},
	} {
		got := compile(t, test.policy).At(at(test.now)).IdleCount == 5
		if got != test.want {
			t.Errorf("%s: applies is %v, want %v", test.name, got, test.want)
		}
	}
}

// Each minute of a day with a change of the clock counts once, whichever side
// of the change it is on.
func TestPeriodsWhereTheClockChanges(t *testing.T) {
	always := compile(t, warm.Policy{Periods: []string{"* * * * *"}, Timezone: "Europe/Berlin", IdleCount: 1})
	for _, day := range []string{"2026-03-29 00:00:00 UTC", "2026-10-25 00:00:00 UTC"} {
		for minute := range 4 * 60 {
			if now := at(day).Add(time.Duration(minute) * time.Minute); always.At(now).IdleCount != 1 {
				t.Errorf("%s is in no period", now)
			}
		}
	}
}

func TestLastPolicyThatAppliesWins(t *testing.T) {
	p := compile(t,
		warm.Policy{IdleCount: 1},
		warm.Policy{Periods: []string{"* 8-17 * * *"}, Timezone: "UTC", IdleCount: 5},
		warm.Policy{Periods: []string{"* 12 * * *"}, Timezone: "UTC", IdleCount: 2})
	for now, want := range map[string]int{
		"2026-11-30 07:00:00 UTC": 1,
		"2026-11-30 09:00:00 UTC": 5,
		"2026-11-30 12:30:00 UTC": 2,
	} {
		if got := p.At(at(now)).IdleCount; got != want {
			t.Errorf("%s: got %d, want %d", now, got, want)
		}
	}
	want := warm.Policy{IdleTime: 5 * time.Minute}
	if diff := cmp.Diff(want, compile(t).At(at("2026-11-30 09:00:00 UTC"))); diff != "" {
		t.Errorf("without a policy (-want +got):\n%s", diff)
	}
}

// step is a moment, with the jobs that run and the nodes to be free.
type step struct {
	after time.Duration
	jobs  int
	want  int
}

func TestDemand(t *testing.T) {
	start := at("2026-11-30 17:00:00 UTC")
	office := []warm.Policy{
		{IdleCount: 0, IdleTime: time.Minute},
		{Periods: []string{"* 8-17 * * *"}, Timezone: "UTC", IdleCount: 3, IdleTime: 30 * time.Minute},
	}
	for _, test := range []struct {
		name     string
		policies []warm.Policy
		most     int
		steps    []step
	}{
		{"nothing asked", nil, 0, []step{{0, 0, 0}, {time.Hour, 9, 0}}},
		{"the hours end: idle time of the policy that wanted more", office, 0, []step{
			{59 * time.Minute, 0, 3}, {60 * time.Minute, 0, 3}, {88 * time.Minute, 0, 3}, {89 * time.Minute, 0, 0},
		}},
		{"more at once, fewer after the idle time", []warm.Policy{{ScaleFactor: 1, IdleTime: 5 * time.Minute}}, 0, []step{
			{0, 0, 0}, {time.Minute, 4, 4}, {2 * time.Minute, 1, 4}, {3 * time.Minute, 6, 6}, {7*time.Minute + 59*time.Second, 0, 6}, {8 * time.Minute, 0, 0},
		}},
		{"the limit of all", []warm.Policy{{IdleCount: 9}}, 4, []step{{0, 0, 4}, {time.Minute, 20, 4}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := warm.NewDemand(compile(t, test.policies...), test.most)
			for _, s := range test.steps {
				if got := d.At(start.Add(s.after), s.jobs); got != s.want {
					t.Errorf("after %s with %d jobs: got %d, want %d", s.after, s.jobs, got, s.want)
				}
			}
		})
	}
}

func TestAny(t *testing.T) {
	for _, test := range []struct {
		policies []warm.Policy
		want     bool
	}{
		{nil, false},
		{[]warm.Policy{{IdleTime: time.Hour}}, false},
		{[]warm.Policy{{}, {IdleCount: 1}}, true},
		{[]warm.Policy{{ScaleFactor: 0.1}}, true},
	} {
		if got := compile(t, test.policies...).Any(); got != test.want {
			t.Errorf("%+v: got %v", test.policies, got)
		}
	}
}

func TestRefusedPolicies(t *testing.T) {
	_, err := warm.Compile([]warm.Policy{
		{Periods: []string{"* 8-17 * *", "61 * * * *", "@daily", "CRON_TZ=UTC * * * * *"}, Timezone: "Berlin"},
		{IdleCount: -1, IdleTime: -time.Second, ScaleFactor: math.NaN(), ScaleFactorLimit: -2},
		{ScaleFactor: math.Inf(1)},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, part := range []string{
		"policy 1:", `period "* 8-17 * *"`, `period "61 * * * *"`, `period "@daily"`, `period "CRON_TZ=UTC`, `timezone is "Berlin"`, "Europe/Berlin",
		"policy 2:", "idle_count is -1", "idle_time is -1", "scale_factor is NaN", "scale_factor_limit is -2",
		"policy 3:", "scale_factor is +Inf",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q:\n%v", part, err)
		}
	}
}
