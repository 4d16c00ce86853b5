package doctor

import (
	"context"
	"strings"
	"testing"
)

// judged is a case of a test of a judgement: the state, and a part of what is
// said.
type judged struct {
	got   Result
	state State
	says  string
}

// expect compares judgements. What is not well says what to do.
func expect(t *testing.T, cases map[string]judged) {
	t.Helper()
	for name, c := range cases {
		if c.got.State != c.state || !strings.Contains(c.got.Evidence+" -> "+c.got.Remedy, c.says) {
			t.Errorf("%s: got %+v, want %s with %q", name, c.got, c.state, c.says)
		}
		if troubled := c.state == Warning || c.state == Failure; troubled != (c.got.Remedy != "") {
			t.Errorf("%s: the remedy is %q", name, c.got.Remedy)
		}
	}
}

// Every check has a name of its own, a question, and needs only checks that are
// made before it.
func TestTableOfChecks(t *testing.T) {
	before := map[string]bool{}
	for _, c := range Checks() {
		if before[c.Name] || c.Group == "" || !strings.HasSuffix(c.Question, "?") || c.look == nil {
			t.Errorf("row %q is not complete, or twice there", c.Name)
		}
		for _, need := range c.Needs {
			if !before[need] {
				t.Errorf("%s needs %s, which is not made before it", c.Name, need)
			}
		}
		before[c.Name] = true
	}
}

func TestBlocked(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	check := Check{Name: "c", Needs: []string{"a", "b"}}
	for name, c := range map[string]struct {
		ctx     context.Context
		outcome map[string]Result
		want    string
	}{
		"none":              {context.Background(), map[string]Result{"a": ok("x"), "b": warning("x", "y")}, ""},
		"one has failed":    {context.Background(), map[string]Result{"a": ok("x"), "b": failed("x", "y")}, "b has failed"},
		"one was skipped":   {context.Background(), map[string]Result{"a": skip("the first has failed")}, "the first has failed"},
		"it is interrupted": {over, map[string]Result{"a": ok("x")}, "interrupted"},
	} {
		got := blocked(c.ctx, check, c.outcome)
		if (got == nil) != (c.want == "") || got != nil && (got.Evidence != c.want || got.State != Skipped) {
			t.Errorf("%s: got %+v, want %q", name, got, c.want)
		}
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		all  []Result
		want State
	}{
		{nil, OK},
		{[]Result{ok("x"), skip("x")}, Skipped},
		{[]Result{failed("x", "y"), warning("x", "y"), ok("x")}, Failure},
		{[]Result{skip("x"), warning("x", "y")}, Warning},
	} {
		if got := worst(c.all); got.State != c.want {
			t.Errorf("the worst of %v is %s", c.all, got.State)
		}
	}
}
