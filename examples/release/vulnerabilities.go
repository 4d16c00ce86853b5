package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
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

// standardLibrary is the module under which govulncheck reports Go itself.
const standardLibrary = "stdlib"

// errVulnerable says that the programs call something with a known hole.
var errVulnerable = errors.New("the programs call functions with known vulnerabilities: update the modules named above")

// vulnerabilities tells what of the known vulnerabilities the programs call. One
// in a module is an error. One in Go's own library is told: it goes with a newer
// Go, which is the builder's and not the repository's to choose.
func vulnerabilities(report io.Reader, out io.Writer) error {
	summaries, called, ours := map[string]string{}, map[string]string{}, map[string]bool{}
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
			// Some are in Go's own library and in a module that it is made from:
			// the module is the one to update.
			inModule := f.Trace[0].Module != standardLibrary
			if called[f.OSV] == "" || inModule {
				called[f.OSV] = fmt.Sprintf("%s %s, fixed in %s", f.Trace[0].Module, f.Trace[0].Version, f.FixedVersion)
			}
			ours[f.OSV] = ours[f.OSV] || inModule
		}
	}
	if len(summaries) == 0 && len(called) == 0 {
		_, err := fmt.Fprintln(out, "No known vulnerabilities.")
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(called)) {
		if _, err := fmt.Fprintf(out, "%s  %s\n  %s\n", id, called[id], summaries[id]); err != nil {
			return err
		}
	}
	modules := 0
	for _, inModule := range ours {
		if inModule {
			modules++
		}
	}
	if _, err := fmt.Fprintf(out, "%d known vulnerabilities in what is called, %d of them not in Go's own library.\n", len(called), modules); err != nil {
		return err
	}
	if modules > 0 {
		return errVulnerable
	}
	return nil
}
