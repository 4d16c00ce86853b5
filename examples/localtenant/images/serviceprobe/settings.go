package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// settings are what the environment asks for. Durations are Go's, like 1m30s.
type settings struct {
	port        int           // PROBE_PORT, 8080 by default; 0 listens nowhere
	listenAfter time.Duration // PROBE_LISTEN_AFTER
	lines       int           // PROBE_LINES, how many lines to print
	lineEvery   time.Duration // PROBE_LINE_EVERY, the pause between two lines
	memory      int           // PROBE_MEMORY, MiB to take and keep
	memoryAfter time.Duration // PROBE_MEMORY_AFTER, when to take it
	dies        bool          // PROBE_DIE_AFTER is there
	dieAfter    time.Duration // PROBE_DIE_AFTER
	exitCode    int           // PROBE_EXIT_CODE, 1 by default, for PROBE_DIE_AFTER
	stopAfter   time.Duration // PROBE_STOP_AFTER, how long it takes to end on TERM
}

func readSettings(lookup func(string) (string, bool)) (settings, error) {
	s := settings{port: 8080, exitCode: 1}
	var wrong []error
	for name, take := range map[string]func(string) error{
		"PROBE_PORT":         number(&s.port, 65535),
		"PROBE_LISTEN_AFTER": duration(&s.listenAfter),
		"PROBE_LINES":        number(&s.lines, 1<<31-1),
		"PROBE_LINE_EVERY":   duration(&s.lineEvery),
		"PROBE_MEMORY":       number(&s.memory, 1<<20),
		"PROBE_MEMORY_AFTER": duration(&s.memoryAfter),
		"PROBE_DIE_AFTER":    duration(&s.dieAfter),
		"PROBE_EXIT_CODE":    number(&s.exitCode, 255),
		"PROBE_STOP_AFTER":   duration(&s.stopAfter),
	} {
		text, found := lookup(name)
		if !found || text == "" {
			continue
		}
		if err := take(text); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		}
	}
	text, _ := lookup("PROBE_DIE_AFTER")
	s.dies = text != ""
	return s, errors.Join(wrong...)
}

func number(into *int, most int) func(string) error {
	return func(text string) error {
		value, err := strconv.Atoi(text)
		if err != nil || value < 0 || value > most {
			return fmt.Errorf("%q is not a number from 0 to %d", text, most)
		}
		*into = value
		return nil
	}
}

func duration(into *time.Duration) func(string) error {
	return func(text string) error {
		value, err := time.ParseDuration(text)
		if err != nil || value < 0 {
			return fmt.Errorf("%q is not a duration like 1m30s", text)
		}
		*into = value
		return nil
	}
}
