package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// message is one of govulncheck's JSON stream, as far as it matters here
// (golang.org/x/vuln/internal/govulncheck).
type message struct {
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *struct {
		OSV          string `json:"osv"`
		FixedVersion string `json:"fixed_version"`
		Trace        []struct {
			Module   string `json:"module"`
			Version  string `json:"version"`
			Function string `json:"function"`
		} `json:"trace"`
	} `json:"finding"`
}

// errVulnerable says that the programs call something with a known hole.
var errVulnerable = errors.New("the programs call functions with known vulnerabilities: update the modules named above in go.mod; stdlib is Go itself, the line toolchain")

// vulnerabilities tells what of the known vulnerabilities the programs call.
// Any is an error: the modules and Go's release are both pinned in go.mod.
func vulnerabilities(report io.Reader, out io.Writer) error {
	summaries, called := map[string]string{}, map[string][]string{}
	stream := json.NewDecoder(report)
	for {
		var m message
		err := stream.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading govulncheck's report: %w", err)
		}
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			// Some are in Go's own library and in a module that it is made from.
			where := fmt.Sprintf("%s %s, fixed in %s", f.Trace[0].Module, f.Trace[0].Version, f.FixedVersion)
			if !slices.Contains(called[f.OSV], where) {
				called[f.OSV] = append(called[f.OSV], where)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(called)) {
		if _, err := fmt.Fprintf(out, "%s  %s\n  %s\n", id, strings.Join(called[id], "; "), summaries[id]); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(out, "%d known vulnerabilities in what is called.\n", len(called)); err != nil {
		return err
	}
	if len(called) > 0 {
		return errVulnerable
	}
	return nil
}
