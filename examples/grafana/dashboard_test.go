package grafana_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
)

// dashboard is what the test reads of Grafana's format.
type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr         string
			LegendFormat string
		}
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

func read(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 10 {
		t.Fatalf("only %d panels are seen", len(d.Panels))
	}
	return d
}

// inserted is a query as Grafana sends it.
func inserted(expr string) string {
	return strings.NewReplacer("$__rate_interval", "10m", "$__range", "30m", "$instance", ".*").Replace(expr)
}

// samples are the driver's metrics as it has written them (testdata/metrics.prom
// is made by a test of cmd/tenant-executor).
func samples(t *testing.T) map[string]labelled {
	t.Helper()
	file, err := os.Open("testdata/metrics.prom")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	textParser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := textParser.TextToMetricFamilies(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]labelled{}
	now := model.Now()
	for _, f := range families {
		vector, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: now}, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range vector {
			set := map[string]string{"instance": "runner-1"}
			for name, value := range s.Metric {
				set[string(name)] = string(value)
			}
			made := labels.FromMap(set)
			all[made.String()] = labelled{made, float64(s.Value)}
		}
	}
	return all
}

type labelled struct {
	labels labels.Labels
	value  float64
}

// Every query is one that Prometheus takes, asks for series that the driver
// writes, by labels that they have, and gives figures.
func TestQueries(t *testing.T) {
	ctx := context.Background()
	all := samples(t)
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	// Half an hour in which counts grow from 0 to what they are.
	const steps = 60
	end := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	appender := db.Appender(ctx)
	for i := range steps + 1 {
		at := end.Add(-time.Duration(steps-i) * 30 * time.Second).UnixMilli()
		for _, s := range all {
			if _, err := appender.Append(0, s.labels, at, s.value*float64(i)/steps); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := appender.Commit(); err != nil {
		t.Fatal(err)
	}
	prom := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: prom})
	queries := 0
	for _, p := range read(t).Panels {
		for _, target := range p.Targets {
			queries++
			name := fmt.Sprintf("%s: %s", p.Title, target.Expr)
			expr, err := prom.ParseExpr(inserted(target.Expr))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			checkSelectors(t, name, expr, all)
			query, err := engine.NewInstantQuery(ctx, db, nil, inserted(target.Expr), end)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			result := query.Exec(ctx)
			vector, err := result.Vector()
			if err != nil || len(vector) == 0 {
				t.Errorf("%s gives nothing: %v", name, err)
			}
			figure := false
			for _, s := range vector {
				figure = figure || !math.IsNaN(s.F)
				checkLegend(t, name, target.LegendFormat, s.Metric)
			}
			if !figure {
				t.Errorf("%s gives no figure: %v", name, vector)
			}
			query.Close()
		}
	}
	if queries < 20 {
		t.Errorf("only %d queries are seen", queries)
	}
}

// checkSelectors has each selector of a query match something that the driver
// writes.
func checkSelectors(t *testing.T, name string, expr parser.Expr, all map[string]labelled) {
	t.Helper()
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		for _, s := range all {
			if !slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
				return nil
			}
		}
		t.Errorf("%s: nothing that the driver writes is %s", name, selector)
		return nil
	})
}

func checkLegend(t *testing.T, name, legend string, metric labels.Labels) {
	t.Helper()
	for _, found := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(legend, -1) {
		if metric.Get(found[1]) == "" {
			t.Errorf("%s: the legend names the label %s, which %s lacks", name, found[1], metric)
		}
	}
}

// All that the driver counts is on the dashboard.
func TestEveryMetricIsShown(t *testing.T) {
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples(t) {
		name := regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(s.labels.Get("__name__"), "")
		if !strings.Contains(string(text), name) {
			t.Errorf("%s is not on the dashboard", name)
		}
	}
}

// Panels lie beside each other, and each has an id of its own.
func TestLayout(t *testing.T) {
	d := read(t)
	ids := map[int]bool{}
	for i, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q at %v", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		for _, q := range d.Panels[:i] {
			a, b := p.GridPos, q.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%q lies on %q", p.Title, q.Title)
			}
		}
	}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	if !slices.Equal(variables, []string{"datasource", "instance"}) {
		t.Errorf("variables %q", variables)
	}
}
