// Package inherit reads GitLab Runner's own config.toml: what a runner has
// there for the kubernetes executor, in the terms of the driver's
// configuration, and what of it has no place here.
package inherit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// File is a config.toml of GitLab Runner, as far as the driver cares
// (common/config.go). It holds no token.
type File struct {
	// Name is its path, for messages.
	Name string
	// Concurrent is how many jobs run at once at most, 0 where the file does
	// not say; ShutdownTimeout how many seconds the runner gives its jobs to
	// end, likewise.
	Concurrent, ShutdownTimeout int
	Runners                     []Runner
}

// Runner is one [[runners]] entry.
type Runner struct {
	Name, URL, Executor string
	// ShortToken is the part of the runner's token that is no secret.
	ShortToken string
	// Limit is how many jobs the runner runs at once at most, 0 for no limit.
	Limit int
	// Kubernetes is the section of the kubernetes executor, nil where there is
	// none.
	Kubernetes map[string]any

	// keys are those of the entry itself, without the sections of executors
	// and without tokens.
	keys map[string]any
}

// Read reads a config.toml.
func Read(name string, text []byte) (File, error) {
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, where(err))
	}
	all, _ = folded(all).(map[string]any)
	file := File{Name: name, Concurrent: number(all["concurrent"]), ShutdownTimeout: number(all["shutdown_timeout"])}
	entries, _ := all["runners"].([]any)
	for _, entry := range entries {
		if keys, ok := entry.(map[string]any); ok {
			file.Runners = append(file.Runners, newRunner(keys))
		}
	}
	if len(file.Runners) == 0 {
		return File{}, fmt.Errorf("%s: no [[runners]] in it: this is not the config.toml of a registered runner", name)
	}
	return file, nil
}

// where is a decoder's error with its place, and without the text around it,
// which may hold a token.
func where(err error) error {
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, column := decode.Position()
		return fmt.Errorf("line %d, column %d: this is not TOML", line, column)
	}
	return errors.New("this is not TOML")
}

func newRunner(keys map[string]any) Runner {
	r := Runner{
		Name: text(keys["name"]), URL: text(keys["url"]), Executor: text(keys["executor"]),
		ShortToken: ShortToken(text(keys["token"])), Limit: number(keys["limit"]), keys: keys,
	}
	r.Kubernetes, _ = keys["kubernetes"].(map[string]any)
	if text(r.Kubernetes["bearer_token"]) != "" {
		r.Kubernetes["bearer_token"] = "set" // that it is there is all that counts
	}
	for key := range keys {
		if strings.Contains(key, "token") || key == "kubernetes" || key == "custom" {
			delete(keys, key)
		}
	}
	return r
}

// named are the tables whose keys are names that somebody has chosen, and not
// keys of the runner's.
var named = []string{
	"pod_labels", "pod_annotations", "node_selector", "node_tolerations", "match_labels", "items", "volume_attributes", "feature_flags",
}

// folded is a value with the keys of its tables in lower case: the runner's own
// decoder takes them in any (github.com/BurntSushi/toml, decode.go). Of two that
// differ in case alone the one in lower case counts, as there.
func folded(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = folded(v[i])
		}
	case map[string]any:
		lower := make(map[string]any, len(v))
		for key, inner := range v {
			name := strings.ToLower(key)
			if _, exact := v[name]; exact && name != key {
				continue
			}
			if !slices.Contains(named, name) {
				inner = folded(inner)
			}
			lower[name] = inner
		}
		return lower
	}
	return value
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func number(value any) int {
	n, _ := value.(int64)
	return int(n)
}

// Label names the runner for people.
func (r Runner) Label() string {
	if r.Name == "" {
		return r.ShortToken
	}
	return r.Name + " (" + r.ShortToken + ")"
}

// Find is the runner with a short token.
func (f File) Find(short string) (Runner, error) {
	found := f.matching(func(r Runner) bool { return r.ShortToken == short })
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 {
		return Runner{}, fmt.Errorf("%s has no runner with the short token %q; it has %s", f.Name, short, names(f.Runners))
	}
	return Runner{}, fmt.Errorf("%s has several runners with the short token %q: %s; the driver cannot tell which of them it works for, give each a token of its own", f.Name, short, names(found))
}

// Only is the one runner of the file that the driver can work for, for
// commands that know no token.
func (f File) Only() (Runner, error) {
	found := f.Custom()
	if len(found) != 1 {
		return Runner{}, fmt.Errorf("%s has %d runners with the custom executor: name one of %s by its short token", f.Name, len(found), names(f.Runners))
	}
	return found[0], nil
}

// Custom are the runners with the custom executor.
func (f File) Custom() []Runner {
	return f.matching(func(r Runner) bool { return r.Executor == "custom" })
}

func (f File) matching(match func(Runner) bool) []Runner {
	return slices.DeleteFunc(slices.Clone(f.Runners), func(r Runner) bool { return !match(r) })
}

func names(runners []Runner) string {
	var all []string
	for _, r := range runners {
		all = append(all, r.Label())
	}
	return strings.Join(all, ", ")
}

// Slots says what is wrong with the number of jobs that the runner takes at
// once, for a number of nodes; "" if nothing is.
func Slots(f File, r Runner, ceiling int) string {
	key, atOnce := "concurrent", max(f.Concurrent, 1) // the runner's own default (common/config.go, NewConfig)
	if r.Limit > 0 && r.Limit < atOnce {
		key, atOnce = "limit", r.Limit
	}
	switch {
	case atOnce > ceiling:
		return fmt.Sprintf("%s = %d in %s is more than tenant.ceiling = %d in the driver's configuration: the jobs above wait for a node with their time-out running; make both the same",
			key, atOnce, f.Name, ceiling)
	case atOnce == 1 && ceiling > 1:
		return fmt.Sprintf("%s = 1 in %s lets one job run at once, although tenant.ceiling = %d in the driver's configuration: make both the same, or jobs queue in GitLab while nodes could be booted",
			key, f.Name, ceiling)
	}
	return ""
}

// Has reports whether the runner's entry has a key, or a section, at the end of
// a path.
func (r Runner) Has(path ...string) bool {
	var value any = r.keys
	for _, key := range path {
		table, _ := value.(map[string]any)
		if value = table[key]; value == nil {
			return false
		}
	}
	return true
}

// Text is a key of the runner's entry that holds text.
func (r Runner) Text(key string) string { return text(r.keys[key]) }
