package settings

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Metrics is where Prometheus finds figures of jobs.
type Metrics struct {
	Textfile string `toml:"textfile" example:"/var/lib/prometheus/node-exporter/tenant_executor.prom" doc:"File for the textfile collector of Prometheus' node exporter, written as a whole at the end of each job. Its folder has to be writable for the runner's user."`
	Listen   string `toml:"listen" example:"127.0.0.1:9252" doc:"Address at which tenant-executor warm answers Prometheus, at /metrics. Anybody who reaches it can read the figures; they name no job."`
}

// Used says whether jobs are to be counted.
func (m Metrics) Used() bool { return m.Textfile != "" || m.Listen != "" }

func (m Metrics) check() error {
	var all []error
	if m.Textfile != "" {
		all = append(all, absolute("metrics.textfile", m.Textfile))
		if !strings.HasSuffix(m.Textfile, ".prom") {
			all = append(all, fmt.Errorf("metrics.textfile is %q: the collector reads files whose names end in .prom alone", m.Textfile))
		}
	}
	if m.Listen != "" {
		if _, _, err := net.SplitHostPort(m.Listen); err != nil {
			all = append(all, fmt.Errorf("metrics.listen is %q: write an address and a port, such as 127.0.0.1:9252", m.Listen))
		}
	}
	return errors.Join(all...)
}

// Log is what the driver says to the host.
type Log struct {
	File   string `toml:"file" example:"/var/log/tenant-executor/jobs.log" doc:"File to which lines are added. The runner's user has to be able to write to it. It may be rotated at any time (logrotate): each step opens it anew."`
	Level  string `toml:"level" default:"info" doc:"Which lines: debug (also the beginning of each step), info (the end of each step), warn (what failed) or error (system failures alone)."`
	Format string `toml:"format" default:"text" doc:"text (key=value) or json."`
}

// Levels of the log, from the one that says the most.
func levels() []string { return []string{"debug", "info", "warn", "error"} }

func (l Log) check() error {
	var all []error
	if l.File != "" {
		all = append(all, absolute("log.file", l.File))
	}
	if !slices.Contains(levels(), l.Level) {
		all = append(all, fmt.Errorf("log.level is %q: use %s", l.Level, strings.Join(levels(), ", ")))
	}
	if l.Format != "text" && l.Format != "json" {
		all = append(all, fmt.Errorf("log.format is %q: use text or json", l.Format))
	}
	return errors.Join(all...)
}
