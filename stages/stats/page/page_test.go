package page_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/socialweb-computer/tenant-executor/stages/course"
	"github.com/socialweb-computer/tenant-executor/stages/stats/page"
)

func start() time.Time { return time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC) }

// hostile is a job's name that would like to be more than text.
const hostile = `<script>alert(1)</script>"' onload=x`

// courses are jobs of all kinds on two nodes.
func courses() []course.Course {
	var all []course.Course
	add := func(id int64, node string, kind course.Kind, begins, wait time.Duration, fail course.Step) {
		at := start().Add(begins)
		ready := at.Add(wait + 6*time.Second)
		all = append(all, course.Course{
			Key: fmt.Sprintf("%016x", id), Attempt: "aa01", JobID: id, Name: hostile, Project: "group/demo", Ref: "main", Runner: "t1",
			Begun: at, Ended: ready.Add(time.Minute), Node: node, Kind: kind, Linger: 20,
			Waits: course.Waits{Node: course.SecondsOf(wait), Start: 5, Reach: 1},
			Steps: []course.Step{
				{Name: course.Prepare, Begun: at, Took: course.SecondsOf(wait + 6*time.Second), Done: true},
				{Name: "build_script", Begun: ready, Took: 50, Done: true, Cause: fail.Cause, Class: fail.Class, Bytes: 1000},
				{Name: course.Cleanup, Begun: ready.Add(50 * time.Second), Took: 10, Done: true},
			},
		})
	}
	add(1, "node-a", course.Cold, 0, time.Minute, course.Step{})
	add(2, "node-b", course.Cold, 10*time.Second, time.Minute, course.Step{Cause: "script_failed", Class: course.ClassBuild})
	add(3, "node-a", course.Held, 3*time.Minute, 0, course.Step{})
	add(4, "node-b", course.Warm, 3*time.Minute, 0, course.Step{Cause: "node_lost", Class: course.ClassSystem})
	add(5, "node-b", course.Queued, 210*time.Second, 40*time.Second, course.Step{})
	add(6, "node-c", course.Cold, 5*time.Hour, 40*time.Second, course.Step{})
	return all
}

func made(t *testing.T, all []course.Course, hold time.Duration) []byte {
	t.Helper()
	var out bytes.Buffer
	err := page.Write(&out, page.Parts{Courses: all, Hold: hold, Host: "runner-1", Version: "v1", Now: start().Add(6 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// each visits all elements of a page.
func each(t *testing.T, text []byte, visit func(n *html.Node, attr map[string]string)) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
		}
		visit(n, attr)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// The page stands alone: it loads nothing, runs nothing, and all its links lead
// to places of its own. All that can be looked at can be reached by keyboard,
// and has a name.
func TestStructure(t *testing.T) {
	ids, links := map[string]int{}, []string{}
	bars := map[string]int{}
	var headings []string
	each(t, made(t, courses(), 5*time.Minute), func(n *html.Node, attr map[string]string) {
		if id := attr["id"]; id != "" {
			ids[id]++
		}
		for name, value := range attr {
			if strings.HasPrefix(name, "on") || name == "src" || name == "srcset" || strings.Contains(value, "http") && attr["http-equiv"] == "" {
				t.Errorf("<%s> has %s=%q", n.Data, name, value)
			}
		}
		if strings.Contains(attr["style"], "ZgotmplZ") || strings.Contains(attr["style"], "NaN") || strings.Contains(attr["style"], "-") {
			t.Errorf("style %q", attr["style"])
		}
		switch n.Data {
		case "script", "iframe", "object", "embed", "img", "form":
			t.Errorf("the page has a <%s>", n.Data)
		case "style":
			if text := textOf(n); strings.Contains(text, "url(") || strings.Contains(text, "@import") {
				t.Error("the style loads something")
			}
		case "link":
			if attr["href"] != "data:," {
				t.Errorf("a link to %q", attr["href"])
			}
		case "a":
			links = append(links, attr["href"])
		case "h1", "h2":
			headings = append(headings, n.Data+" "+textOf(n))
		}
		classes := strings.Fields(attr["class"])
		if slices.Contains(classes, "bar") {
			bars[classes[1]]++
			if attr["aria-label"] == "" || n.Data == "span" && attr["role"] != "img" {
				t.Errorf("a bar without a name: %v", attr)
			}
		}
		if slices.Contains(classes, "scroll") && (attr["tabindex"] != "0" || attr["role"] != "region" || attr["aria-labelledby"] == "") {
			t.Errorf("what scrolls cannot be reached by keyboard: %v", attr)
		}
	})
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%d elements have the id %s", n, id)
		}
	}
	for _, link := range links {
		if id, inside := strings.CutPrefix(link, "#"); !inside || ids[id] == 0 {
			t.Errorf("a link leads to %q, which is not there", link)
		}
	}
	for _, class := range []string{"waiting", "boot", "pull", "reach", "run", "placeholder", "idle"} {
		if bars[class] == 0 {
			t.Errorf("no bar shows %s", class)
		}
	}
	want := []string{"h1 Jobs on the tenant cluster", "h2 Nodes over time", "h2 Node-minutes paid and used", "h2 Waits by phase, cold against warm", "h2 Failures by cause", "h2 Jobs"}
	if !slices.Equal(headings, want) {
		t.Errorf("headings %q", headings)
	}
	if len(links) < 20 {
		t.Errorf("only %d links", len(links))
	}
}

// The page says what the statistics say, and what others named stays text.
func TestContent(t *testing.T) {
	var rows, windows int
	var all string
	each(t, made(t, courses(), 0), func(n *html.Node, attr map[string]string) {
		switch {
		case n.Data == "tr" && strings.HasPrefix(attr["id"], "job-"):
			rows++
			if !strings.Contains(textOf(n), hostile) {
				t.Errorf("a row without the job's name: %s", textOf(n))
			}
		case n.Data == "h3":
			windows++
		case n.Data == "body":
			all = textOf(n)
		}
	})
	if rows != 6 || windows != 2 {
		t.Errorf("%d rows and %d parts of the timeline; want 6 and 2", rows, windows)
	}
	for _, part := range []string{
		"6 attempts at 6 jobs, 2026-11-30 08:00 to 2026-11-30 13:01 (UTC +0000). Made 2026-11-30 14:00 on runner-1 by tenant-executor v1.",
		"4 passed, 1 failed, 1 system failure", "A cold start costs 1 min more than", "node_lost system 1 4", "3 nodes,", "which is none here (tenant.hold)",
	} {
		if !strings.Contains(all, part) {
			t.Errorf("the page does not say %q:\n%s", part, all)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	text := string(made(t, nil, 0))
	if !strings.Contains(text, "No job has been written down") || strings.Contains(text, "<table") {
		t.Error(text)
	}
	// A job that never got a node.
	lost := courses()[:1]
	lost[0].Kind, lost[0].Node, lost[0].Waits = "", "", course.Waits{}
	text = string(made(t, lost, 0))
	if strings.Count(text, "No job has had a node.") != 2 || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error(text)
	}
}
