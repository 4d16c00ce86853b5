package agent

import (
	"testing"
	"time"
)

// How long a tail is waited for, by what comes and by who holds the pipe.
func TestTailRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bytes func(look int) int64
		held  func(look int) bool
		by    func(look int) writers
		want  time.Duration
	}{
		"silent, nobody at work":         {want: tailQuiet},
		"silent, somebody at work":       {by: always(writers{atWork: true}), want: tailLimit},
		"a filter that waits":            {by: always(writers{ending: true}), want: tailQuiet},
		"a filter at work":               {by: always(writers{ending: true, atWork: true}), want: filterLimit},
		"a filter at work for a while":   {by: until(400, writers{ending: true, atWork: true}), want: 400*tailLook + tailQuiet/2},
		"now and then":                   {bytes: every(10), want: tailLimit},
		"now and then, too seldom":       {bytes: every(30), want: tailQuiet},
		"now and then, by a filter":      {bytes: every(10), by: always(writers{ending: true}), want: filterLimit},
		"just below the bytes":           {bytes: func(look int) int64 { return map[bool]int64{true: tailBytes - 1}[look == 1] }, want: tailLook + tailQuiet},
		"as many as the bytes":           {bytes: func(look int) int64 { return map[bool]int64{true: tailBytes}[look == 1] }, want: tailLook},
		"as many, by a filter, then end": {bytes: func(look int) int64 { return map[bool]int64{true: tailBytes}[look == 1] }, by: always(writers{ending: true}), want: tailLook + tailQuiet},
		"a full spool is waited for":     {held: func(look int) bool { return look < 2000 }, want: 1999*tailLook + tailQuiet},
	} {
		t.Run(name, func(t *testing.T) {
			var rule tail
			looks := 0
			for over := false; !over; {
				if looks++; looks > 5000 {
					t.Fatal("it does not end")
				}
				bytes, held, by := int64(0), false, writers{}
				if c.bytes != nil {
					bytes = c.bytes(looks)
				}
				if c.held != nil {
					held = c.held(looks)
				}
				if c.by != nil {
					by = c.by(looks)
				}
				rule.look(bytes, held)
				over = rule.asks() && rule.over(by)
			}
			// Who holds the pipe is asked now and then.
			if got := time.Duration(looks) * tailLook; got < c.want || got >= c.want+tailQuiet {
				t.Errorf("ended after %s, want %s", got, c.want)
			}
		})
	}
}

func always(w writers) func(int) writers { return func(int) writers { return w } }

func until(look int, w writers) func(int) writers {
	return func(now int) writers {
		if now <= look {
			return w
		}
		return writers{}
	}
}

func every(n int) func(int) int64 {
	return func(look int) int64 {
		if look%n == 0 {
			return 1
		}
		return 0
	}
}

// Filters whose input has ended end by themselves; others do not.
func TestFiltersThatEnd(t *testing.T) {
	t.Parallel()
	pipe := func(n uint64) pipeID { return pipeID{1, n} }
	out := map[pipeID]bool{pipe(9): true}
	process := func(stdin uint64, writes ...uint64) processPipes {
		p := processPipes{writes: map[pipeID]bool{}}
		if stdin != 0 {
			p.stdin = pipe(stdin)
		}
		for _, n := range writes {
			p.writes[pipe(n)] = true
		}
		return p
	}
	for name, c := range map[string]struct {
		all  map[int]processPipes
		want bool
	}{
		"nobody":                    {nil, false},
		"a background process":      {map[int]processPipes{2: process(0, 9)}, false},
		"a filter":                  {map[int]processPipes{2: process(5, 9)}, true},
		"a filter of the other":     {map[int]processPipes{2: process(5, 8)}, false},
		"its writer lives":          {map[int]processPipes{2: process(5, 9), 3: process(0, 5)}, false},
		"two in a row":              {map[int]processPipes{2: process(5, 9), 3: process(6, 5)}, true},
		"three, whose writer lives": {map[int]processPipes{2: process(5, 9), 3: process(6, 5), 4: process(0, 6)}, false},
		"a ring":                    {map[int]processPipes{2: process(5, 9, 6), 3: process(6, 5)}, false},
		"its own writer":            {map[int]processPipes{2: process(5, 9, 5)}, false},
		"reads the output":          {map[int]processPipes{2: process(9, 9)}, false},
		"one of two":                {map[int]processPipes{2: process(0, 9), 3: process(5, 9)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := anyEnding(c.all, out); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
