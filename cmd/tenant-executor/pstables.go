package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/socialweb-computer/tenant-executor/cmd/tenant-executor/show"
	"github.com/socialweb-computer/tenant-executor/stages"
)

func phaseCell(phase stages.JobPhase) show.Cell {
	tones := map[stages.JobPhase]show.Tone{
		stages.JobWaiting: show.Waiting, stages.JobStarting: show.Waiting, stages.JobRunning: show.Good,
		stages.JobHeld: show.Bad, stages.JobEnding: show.Faint, stages.JobEnded: show.Faint,
	}
	return show.Cell{Text: string(phase), Tone: tones[phase]}
}

func (h *hand) jobTable(jobs []stages.JobView, now time.Time) *show.Table {
	wide := h.format == show.WideFormat
	names := []string{"JOB", "PROJECT", "NAME", "PHASE", "NODE", "AGE", "STAGE", "WAITS FOR"}
	if wide {
		names = append(names[:7:7], "RUNNER", "POD", "WAITS FOR")
	}
	if h.target.All {
		names = append([]string{"NAMESPACE"}, names...)
	}
	t := h.table()
	t.Head(names...)
	for _, j := range jobs {
		row := []show.Cell{
			show.Text(strconv.FormatInt(j.ID, 10)), show.Text(j.Project), show.Text(j.Name), phaseCell(j.Phase),
			show.Text(j.Node), ageCell(j.Made, now), show.Text(stageText(j.Stage, now)),
		}
		if wide {
			row = append(row, show.Text(j.Runner), show.Text(j.Pod))
		}
		waits := j.Waits
		if j.Phase == stages.JobHeld && waits == "" {
			waits = "its end in " + until(j.Held, now)
		}
		row = append(row, show.Text(waits))
		if h.target.All {
			row = append([]show.Cell{show.Text(j.Namespace)}, row...)
		}
		t.Add(row...)
	}
	return t
}

// ageCell is how long it is since a time.
func ageCell(since, now time.Time) show.Cell {
	if since.IsZero() {
		return show.Text("")
	}
	return show.Text(show.Age(now.Sub(since)))
}

// stageText is a stage and how long it has run.
func stageText(s *stages.StageView, now time.Time) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s)", s.Title(), show.Age(now.Sub(s.Started)))
}

func (h *hand) placeholderTable(list []stages.PlaceholderView, now time.Time) *show.Table {
	t := h.table()
	t.Head("PLACEHOLDER", "HOLD", "NODE", "AGE", "ENDS IN")
	for _, p := range list {
		node := show.Text(p.Node)
		if p.Node == "" {
			node = show.Cell{Text: "waits for one", Tone: show.Waiting}
		}
		t.Add(show.Text(p.Name), show.Text(p.Hold), node, ageCell(p.Made, now), show.Text(until(p.Expires, now)))
	}
	return t
}

// until is how long it is to a time.
func until(at *time.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	return show.Age(at.Sub(now))
}

// nodeTable shows nodes. Narrow is whether one may carry Pods that nobody saw.
func (h *hand) nodeTable(nodes []stages.NodeView, narrow bool, now time.Time) *show.Table {
	wide := h.format == show.WideFormat
	names := []string{"NODE", "STATE", "AGE", "CARRIES"}
	if wide {
		names = []string{"NODE", "STATE", "AGE", "CPU", "MEMORY", "CARRIES"}
	}
	t := h.table()
	t.Head(names...)
	for _, n := range nodes {
		state := show.Cell{Text: "ready", Tone: show.Good}
		if !n.Ready {
			state = show.Cell{Text: "not ready", Tone: show.Bad}
			if wide {
				state.Text += ": " + n.Reason
			}
		}
		row := []show.Cell{show.Text(n.Name), state, ageCell(n.Joined, now)}
		if wide {
			row = append(row, show.Text(n.CPU), show.Text(n.Memory))
		}
		carries := show.Text(n.Carries)
		if n.Carries == "" {
			carries = show.Cell{Text: "nothing", Tone: show.Faint}
			if narrow {
				carries.Text = "nothing of the namespaces that may be listed"
			}
		}
		t.Add(append(row, carries)...)
	}
	return t
}
