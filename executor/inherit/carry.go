package inherit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

// Carry puts what a runner has for the kubernetes executor in the terms of the
// driver's configuration. The rows name every key that was found.
func Carry(r Runner) (settings.Inherited, []Row) {
	c := &carrier{into: settings.Inherited{}, known: map[string]settings.Field{}, without: map[string]Row{}, tables: settings.Tables()}
	for _, field := range new(settings.Kubernetes).Fields() {
		c.known[field.Key] = field
	}
	for _, row := range Without() {
		c.without[row.Key] = row
	}
	for _, key := range slices.Sorted(maps.Keys(r.Kubernetes)) {
		if value := r.Kubernetes[key]; !unset(value) {
			c.key(key, value)
		}
	}
	c.entry(r.keys)
	return c.into, c.rows
}

type carrier struct {
	into    settings.Inherited
	known   map[string]settings.Field
	without map[string]Row
	tables  []settings.Table
	rows    []Row
}

// unset says whether a value is what the runner writes for a key that nobody
// has set: registering a runner writes many of them.
func unset(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, inner := range v {
			if !unset(inner) {
				return false
			}
		}
		return true
	}
	return false
}

func (c *carrier) row(key string, state State, note string) {
	c.rows = append(c.rows, Row{key, state, note})
}

func (c *carrier) key(key string, value any) {
	field, known := c.known[key]
	place, moved := Moved()[key]
	switch {
	case known:
		c.take(key, Place{"kubernetes", key}, value, field.Parity)
	case moved:
		c.take(key, place, value, "as "+place.Table+"."+place.Key)
	case key == autoscaler:
		c.autoscaler(value)
	case value == false || value == int64(0):
		// What is off by default is no loss.
	default:
		c.absent(key)
	}
}

// absent tells of a key that the driver's configuration has not.
func (c *carrier) absent(key string) {
	if row, known := c.without[key]; known {
		c.rows = append(c.rows, row)
		return
	}
	c.row(key, NotPossible, "this version of the driver does not know the key")
}

// take sets a key of the driver's configuration, as far as it takes the value.
func (c *carrier) take(key string, place Place, value any, difference string) {
	if key == "pod_labels" || key == "pod_annotations" {
		value = c.unprotected(key, value)
	}
	var refused *settings.NotAcceptedError
	err := settings.Accept(place.Table, place.Key, value)
	if errors.As(err, &refused) && refused.Err == nil {
		for _, path := range refused.Unknown {
			value = without(value, path)
			c.absent(key + "." + strings.Join(path, "."))
		}
		err = settings.Accept(place.Table, place.Key, value)
	}
	if err == nil && place == (Place{"cluster", "url"}) {
		err = settings.CheckURL(key, text(value))
	}
	if err != nil {
		c.row(key, Refused, err.Error())
		return
	}
	c.set(place, value)
	state := Carried
	if difference != "" {
		state = Differs
	}
	c.row(key, state, difference)
	c.inner(key, place.Table+"."+place.Key, value)
}

// inner tells of keys inside a value that differ.
func (c *carrier) inner(key, path string, value any) {
	for _, table := range c.tables {
		inside, found := strings.CutPrefix(table.Name, path)
		if !found || inside != "" && !strings.HasPrefix(inside, ".") {
			continue
		}
		for _, k := range table.Keys {
			way := strings.Split(strings.TrimPrefix(inside+"."+k.Name, "."), ".")
			if k.Parity != "" && holds(value, way) {
				c.row(key+"."+strings.Join(way, "."), Differs, k.Parity)
			}
		}
	}
}

// holds says whether a value, or an entry of it, has something at the end of a
// path.
func holds(value any, path []string) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(entry any) bool { return holds(entry, path) })
	case map[string]any:
		inner, found := v[path[0]]
		return found && (len(path) == 1 && !unset(inner) || len(path) > 1 && holds(inner, path[1:]))
	}
	return false
}

func (c *carrier) set(place Place, value any) {
	if c.into[place.Table] == nil {
		c.into[place.Table] = map[string]any{}
	}
	c.into[place.Table][place.Key] = value
}

// unprotected leaves out names of the runner's and of the driver's own, which
// the kubernetes executor passes over as well.
func (c *carrier) unprotected(key string, value any) any {
	table, ok := value.(map[string]any)
	if !ok {
		return value
	}
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if pod.Protected(name) {
			c.row(key+"."+name, NotPossible, "the name belongs to the runner or the driver")
			continue
		}
		kept[name] = table[name]
	}
	return kept
}

// without is a value without what a path leads to, in each entry of lists.
func without(value any, path []string) any {
	switch v := value.(type) {
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = without(v[i], path)
		}
		return all
	case map[string]any:
		kept := maps.Clone(v)
		if len(path) == 1 {
			delete(kept, path[0])
		} else if inner, ok := kept[path[0]]; ok {
			kept[path[0]] = without(inner, path[1:])
		}
		return kept
	}
	return value
}

// autoscaler carries the placeholders' settings to [warm].
func (c *carrier) autoscaler(value any) {
	table, ok := value.(map[string]any)
	if !ok {
		c.row(autoscaler, Refused, "it has to be a table")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if !unset(table[key]) {
			c.take(autoscaler+"."+key, Place{"warm", key}, table[key],
				fmt.Sprintf("as warm.%s; a placeholder is a whole node, and \"tenant-executor warm\" keeps them: run it as a service", key))
		}
	}
	if warm := c.into["warm"]; warm["policy"] != nil && warm["pause_pod_image"] == nil {
		warm["pause_pod_image"] = pauseImage
	}
}

// entry looks at the runner's keys outside the section.
func (c *carrier) entry(keys map[string]any) {
	for _, key := range jobKeys() {
		if value := keys[key]; value != nil && !unset(value) {
			c.take(key, Place{"job", key}, value, "as job."+key)
		}
	}
	for _, row := range EntryKeys() {
		if value := keys[row.Key]; value != nil && value != false && !unset(value) {
			c.rows = append(c.rows, row)
		}
	}
	set, _ := keys["feature_flags"].(map[string]any)
	for _, row := range Flags() {
		if set[row.Key] == true {
			c.rows = append(c.rows, row)
		}
	}
}
