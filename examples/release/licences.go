package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// licences lists the modules in a program with their licences, and gives the
// texts, as most of the licences ask for. A licence that is not known is an
// error: a person has to look at it.
func licences(program string, folder func(path, version string) (string, error), out io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading the modules in %s: %w", program, err)
	}
	var list, texts strings.Builder
	var failed []error
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		dir, err := folder(module.Path, module.Version)
		if err != nil {
			return err
		}
		text, err := licenceText(dir)
		name := identify(text)
		if err == nil && name == "" {
			err = errors.New("the licence is not one of those that are known here")
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", module.Path, module.Version, err))
			continue
		}
		fmt.Fprintf(&list, "%-44s %-48s %s\n", module.Path, module.Version, name)
		fmt.Fprintf(&texts, "\n==== %s %s\n\n%s\n", module.Path, module.Version, strings.TrimSpace(text))
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Modules in %s and their licences\n\n%s%s", filepath.Base(program), list.String(), texts.String())
	return err
}

// moduleFolder is where a module's files are.
func moduleFolder(path, version string) (string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path)
	cmd.Stderr = os.Stderr
	dir, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding module %s %s: %w", path, version, err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// licenceText is the text of the licence files in a folder: there may be several.
func licenceText(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.Type().IsRegular() && (strings.HasPrefix(name, "LICEN") || strings.HasPrefix(name, "COPYING")) {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				return "", err
			}
			texts = append(texts, string(text))
		}
	}
	if len(texts) == 0 {
		return "", fmt.Errorf("%s has no licence file", dir)
	}
	return strings.Join(texts, "\n"), nil
}

// identify is the SPDX name of a licence by words that only it has, "" for one
// that is not known. A file with several gives them all.
func identify(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	has := func(part string) bool { return strings.Contains(words, part) }
	redistribution := has("Redistribution and use in source and binary forms")
	var all []string
	for _, licence := range []struct {
		name string
		is   bool
	}{
		{"Apache-2.0", has("Apache License") && has("Version 2.0, January 2004")},
		{"MIT", has("Permission is hereby granted, free of charge, to any person obtaining a copy")},
		{"BSD-3-Clause", redistribution && (has("Neither the name") || has("names of its contributors may not") || has("The names of its contributors"))},
		{"BSD-2-Clause", redistribution && !has("Neither the name") && !has("contributors may not")},
		{"ISC", has("Permission to use, copy, modify, and/or distribute this software for any purpose") || has("Permission to use, copy, modify, and distribute this software for any purpose")},
		{"MPL-2.0", has("Mozilla Public License Version 2.0")},
	} {
		if licence.is {
			all = append(all, licence.name)
		}
	}
	return strings.Join(all, " AND ")
}
