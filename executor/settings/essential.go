package settings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Essential reads what deleting a job's Pods takes of a file that cannot be
// used as a whole: the cluster and the namespace, and beside them the state
// folder and the namespaces that jobs may choose. Whatever else is wrong with
// the file, or is not there, has its default. A file that breaks off counts as
// far as it goes.
//
// The namespace has to stand in the file: the default would be a guess, by
// which Pods are looked for where they are not.
func Essential(name string, text []byte) (Settings, error) {
	said := tables(text)
	s := Defaults()
	for table, keys := range map[string][]string{
		"cluster":    {"url", "discover_cluster", "discover_kubeconfig", "discover_context", "discover_resource", "in_cluster", "ca_file", "cert_file", "key_file"},
		"kubernetes": {"namespace", "namespace_per_job", "namespace_overwrite_allowed", "cleanup_grace_period_seconds"},
		"state":      {"dir"},
		"cleanup":    {"timeout"},
	} {
		for _, key := range keys {
			if value, found := said[table][key]; found {
				s.takeValid(table, key, value)
			}
		}
	}
	if _, found := said["kubernetes"]["namespace"]; !found && said["kubernetes"]["namespace_per_job"] != true {
		return Settings{}, fmt.Errorf("%s: kubernetes.namespace cannot be read", name)
	}
	if err := s.check(); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// takeValid sets a key, if it takes the value.
func (s *Settings) takeValid(table, key string, value any) {
	text, err := toml.Marshal(Inherited{table: {key: value}})
	if err != nil {
		return
	}
	with := *s
	if decode(text, &with) == nil {
		*s = with
	}
}

// tables are the tables of a text, up to where it is no TOML any more.
func tables(text []byte) map[string]map[string]any {
	lines := strings.SplitAfter(string(text), "\n")
	for {
		var all map[string]any
		err := toml.Unmarshal([]byte(strings.Join(lines, "")), &all)
		var broken *toml.DecodeError
		if err != nil && errors.As(err, &broken) && len(lines) > 0 {
			row, _ := broken.Position()
			lines = lines[:min(max(row-1, 0), len(lines)-1)]
			continue
		}
		found := map[string]map[string]any{}
		for name, value := range all {
			if table, ok := value.(map[string]any); ok {
				found[name] = table
			}
		}
		return found
	}
}
