package job

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpandIsOneLevelDeepAndTakesTheLastOfAKey(t *testing.T) {
	vars := Variables{
		{Key: TempProjectDir, Value: "/b/p.tmp"},
		{Key: "A", Value: "first"},
		{Key: "A", Value: "last"},
		{Key: "B", Value: "b-$A-${A}"},
		{Key: "C", Value: "c-$B"},
		{Key: "F", Value: "content of $A", File: true},
		{Key: "G", Value: "path-$F"},
		{Key: "R", Value: "raw-$A", Raw: true},
		{Key: "D", Value: "cost $$5 $1"},
		{Key: "N", Value: "[$NOSUCH]"},
	}
	got := map[string]string{}
	for _, v := range vars.Expand() {
		got[v.Key] = v.Value
	}
	want := map[string]string{
		TempProjectDir: "/b/p.tmp",
		"A":            "last",
		"B":            "b-last-last",
		"C":            "c-b-$A-${A}",
		"F":            "content of last",
		"G":            "path-/b/p.tmp/F",
		"R":            "raw-$A",
		"D":            "cost $5 ",
		"N":            "[]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("expanded values (-want +got):\n%s", diff)
	}
}

func TestFlattenResolvesChainsAndLeavesTheRest(t *testing.T) {
	vars := Variables{
		{Key: "ONE", Value: "1"},
		{Key: "TWO", Value: "$ONE-2"},
		{Key: "THREE", Value: "$TWO-3"},
		{Key: "FOUR", Value: "$THREE-4-$$-$FILE"},
		{Key: "FILE", Value: "$ONE", File: true},
		{Key: "RAW", Value: "$ONE", Raw: true},
		{Key: "SHOWRAW", Value: "see $RAW"},
		{Key: "X", Value: "x$Y"},
		{Key: "Y", Value: "y$X"},
	}
	got := map[string]string{}
	for _, v := range vars.Flatten() {
		got[v.Key] = v.Value
	}
	want := map[string]string{
		"ONE":     "1",
		"TWO":     "$ONE-2",
		"THREE":   "$ONE-2-3",
		"FOUR":    "$ONE-2-3-4-$$-${FILE}",
		"FILE":    "$ONE",
		"RAW":     "$ONE",
		"SHOWRAW": "see $RAW",
		"X":       "xy$X",
		"Y":       "yx$Y",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flattened values (-want +got):\n%s", diff)
	}
}

func TestApplies(t *testing.T) {
	for _, c := range []struct {
		when             string
		success, failure bool
	}{
		{"", true, false},
		{WhenOnSuccess, true, false},
		{WhenOnFailure, false, true},
		{WhenAlways, true, true},
	} {
		if got := Applies(c.when, true); got != c.success {
			t.Errorf("Applies(%q, true) = %v", c.when, got)
		}
		if got := Applies(c.when, false); got != c.failure {
			t.Errorf("Applies(%q, false) = %v", c.when, got)
		}
	}
}
