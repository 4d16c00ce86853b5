package metrics

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/socialweb-computer/tenant-executor/stages/atomicfile"
)

// Gauge is a value of the present.
type Gauge struct {
	Name, Help string
	// Labels are names and values by turns.
	Labels []string
	Value  float64
}

// Text is the counts, and gauges, in Prometheus' text format. Gauges of one name
// follow one another.
func (t *Totals) Text(gauges ...Gauge) ([]byte, error) {
	var out bytes.Buffer
	for _, f := range append(t.families(), gaugeFamilies(gauges)...) {
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			return nil, fmt.Errorf("the metrics as text: %w", err)
		}
	}
	return out.Bytes(), nil
}

func (t *Totals) families() []*dto.MetricFamily {
	byName := map[string][]series{}
	for _, s := range t.list() {
		byName[s.Name] = append(byName[s.Name], s)
	}
	var all []*dto.MetricFamily
	for _, m := range metrics() {
		kind := dto.MetricType_COUNTER
		if m.bounds != nil {
			kind = dto.MetricType_HISTOGRAM
		}
		family := &dto.MetricFamily{Name: &m.name, Help: &m.help, Type: &kind}
		for _, s := range byName[m.name] {
			family.Metric = append(family.Metric, m.metric(s))
		}
		if family.Metric != nil {
			all = append(all, family)
		}
	}
	return all
}

func (m metric) metric(s series) *dto.Metric {
	made := &dto.Metric{}
	for i := range m.labels {
		made.Label = append(made.Label, &dto.LabelPair{Name: &m.labels[i], Value: &s.Labels[i]})
	}
	if m.bounds == nil {
		made.Counter = &dto.Counter{Value: &s.Value}
		return made
	}
	// Prometheus' buckets hold all that lies below their bound.
	histogram := &dto.Histogram{SampleSum: &s.Value}
	var below uint64
	for i := range m.bounds {
		below += s.Buckets[i]
		upTo := below
		histogram.Bucket = append(histogram.Bucket, &dto.Bucket{UpperBound: &m.bounds[i], CumulativeCount: &upTo})
	}
	below += s.Buckets[len(m.bounds)]
	histogram.SampleCount = &below
	made.Histogram = histogram
	return made
}

func gaugeFamilies(gauges []Gauge) []*dto.MetricFamily {
	var all []*dto.MetricFamily
	for _, g := range gauges {
		made := &dto.Metric{Gauge: &dto.Gauge{Value: &g.Value}}
		for i := 0; i+1 < len(g.Labels); i += 2 {
			made.Label = append(made.Label, &dto.LabelPair{Name: &g.Labels[i], Value: &g.Labels[i+1]})
		}
		if n := len(all); n > 0 && all[n-1].GetName() == g.Name {
			all[n-1].Metric = append(all[n-1].Metric, made)
			continue
		}
		kind := dto.MetricType_GAUGE
		all = append(all, &dto.MetricFamily{Name: &g.Name, Help: &g.Help, Type: &kind, Metric: []*dto.Metric{made}})
	}
	return all
}

// textMode lets the collector read the file, which may run as another user.
const textMode = 0o644

// writeText replaces the file as a whole. What is written beside it does not end
// in .prom, so the collector does not read it (node_exporter,
// collector/textfile.go).
func writeText(path string, text []byte) error {
	return atomicfile.File{Path: path, Mode: textMode, Made: func(made *os.File) error {
		sweep(atomicfile.Pattern(path))
		return made.Chmod(textMode)
	}}.Write(text)
}

// abandonedAfter is when a file that is being written is one whose writer has
// died.
const abandonedAfter = time.Hour

func sweep(pattern string) {
	found, _ := filepath.Glob(pattern)
	for _, name := range found {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(name)
		}
	}
}
