package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVulnerabilities(t *testing.T) {
	osv := func(id string) string { return `{"osv":{"id":"` + id + `","summary":"hole ` + id + `"}}` }
	finding := func(id, module, function string) string {
		return `{"finding":{"osv":"` + id + `","fixed_version":"v2","trace":[{"module":"` + module + `","version":"v1","function":"` + function + `"}]}}`
	}
	for _, test := range []struct {
		name, report, want string
		err                error
	}{
		{"nothing", `{"config":{}}`, "0 known vulnerabilities in what is called.\n", nil},
		{"in Go's library", osv("GO-1") + finding("GO-1", "stdlib", "Read"),
			"GO-1  stdlib v1, fixed in v2\n  hole GO-1\n1 known vulnerabilities in what is called.\n", errVulnerable},
		{"imported, not called", osv("GO-2") + finding("GO-2", "example.com/m", ""), "0 known vulnerabilities in what is called.\n", nil},
		{"called", osv("GO-3") + finding("GO-3", "example.com/m", "F") + finding("GO-3", "example.com/m", "G"),
			"GO-3  example.com/m v1, fixed in v2\n  hole GO-3\n1 known vulnerabilities in what is called.\n", errVulnerable},
		{"in both", osv("GO-4") + finding("GO-4", "stdlib", "F") + finding("GO-4", "example.com/m", "F") + finding("GO-4", "stdlib", "G"),
			"GO-4  stdlib v1, fixed in v2; example.com/m v1, fixed in v2\n  hole GO-4\n1 known vulnerabilities in what is called.\n", errVulnerable},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := vulnerabilities(strings.NewReader(test.report), &out); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if out.String() != test.want {
				t.Errorf("got\n%swant\n%s", out.String(), test.want)
			}
		})
	}
	if err := vulnerabilities(strings.NewReader(`{"osv":`), &bytes.Buffer{}); err == nil {
		t.Error("half a report is taken for a whole one")
	}
}

func TestLicences(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	licence := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "LICENSE.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder := func(string, string) (string, error) { return dir, nil }
	if err := licences(self, folder, &bytes.Buffer{}); err == nil && dependencies(t, self) {
		t.Error("a module without a licence is accepted")
	}
	licence("All rights reserved.")
	if err := licences(self, folder, &bytes.Buffer{}); err == nil && dependencies(t, self) {
		t.Error("a licence that nobody knows is accepted")
	}
	for name, text := range map[string]string{
		"MIT":          "Permission is hereby granted, free of charge,\n to any person obtaining a copy of",
		"Apache-2.0":   "Apache License\n Version 2.0, January 2004",
		"BSD-3-Clause": "Redistribution and use in source and binary forms … Neither the name of",
		"BSD-2-Clause": "Redistribution and use in source and binary forms, with",
		"ISC":          "Permission to use, copy, modify, and/or distribute this software for any purpose",
		"MPL-2.0":      "Mozilla Public License Version 2.0",
		"Apache-2.0 AND MIT": "Apache License Version 2.0, January 2004 " +
			"Permission is hereby granted, free of charge, to any person obtaining a copy",
		"": "Copyright",
	} {
		if got := identify(text); got != name {
			t.Errorf("%q is %q, want %q", text, got, name)
		}
	}
}

// dependencies says whether a program has modules in it.
func dependencies(t *testing.T, program string) bool {
	t.Helper()
	var out bytes.Buffer
	err := licences(program, func(string, string) (string, error) { return "", errors.New("asked") }, &out)
	return err != nil
}
