package settings

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Draft is a file that was read and not yet checked: what it does not say may
// be inherited.
type Draft struct {
	name string
	text []byte
	own  Settings
}

// Read reads the text of a file named name, for its errors.
func Read(name string, text []byte) (Draft, error) {
	d := Draft{name: name, text: text, own: Defaults()}
	if err := decode(text, &d.own); err != nil {
		return Draft{}, fmt.Errorf("%s: %w", name, explain(err))
	}
	if err := refuseZero(text); err != nil {
		return Draft{}, fmt.Errorf("%s: %w", name, err)
	}
	// What follows reads that file.
	if err := d.own.Inherit.check(); err != nil {
		return Draft{}, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// refuseZero refuses a tenant.pods_per_node of 0: in the settings that is one that
// nobody has told, which is another thing.
func refuseZero(text []byte) error {
	var said struct {
		Tenant struct {
			PodsPerNode *int `toml:"pods_per_node"`
		} `toml:"tenant"`
	}
	if err := toml.Unmarshal(text, &said); err != nil {
		return explain(err)
	}
	if n := said.Tenant.PodsPerNode; n != nil && *n == 0 {
		return errors.New("tenant.pods_per_node is 0: it has to be at least 1, as the gateway has it; leave it out where that is not known")
	}
	return nil
}

// InheritFrom is the file that the draft inherits from, "" if none.
func (d Draft) InheritFrom() string { return d.own.Inherit.ConfigFile }

// Settings are the settings of the file alone, checked. The error lists all
// that is wrong.
func (d Draft) Settings() (Settings, error) {
	if err := d.own.check(); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", d.name, err)
	}
	return d.own, nil
}

// Inherited is what stands in another file, in the terms of this one: table,
// key, value. Accept has taken each of them.
type Inherited map[string]map[string]any

// Over are the settings of the file over those that it inherits: a key of the
// file wins as a whole. From names the other file, for errors.
func (d Draft) Over(inherited Inherited, from string) (Settings, error) {
	var said map[string]map[string]any
	if err := toml.Unmarshal(d.text, &said); err != nil {
		return Settings{}, fmt.Errorf("%s: %w", d.name, explain(err))
	}
	text, err := toml.Marshal(d.reachable(inherited, said["cluster"]))
	if err != nil {
		return Settings{}, fmt.Errorf("what %s inherits from %s: %w", d.name, from, err)
	}
	s := Defaults()
	if err := decode(text, &s); err != nil {
		return Settings{}, fmt.Errorf("what %s inherits from %s: %w", d.name, from, err)
	}
	into, own := reflect.ValueOf(&s).Elem(), reflect.ValueOf(&d.own).Elem()
	for i := range into.NumField() {
		table := into.Type().Field(i).Tag.Get("toml")
		to, values := fieldsOf(into.Field(i), nil), fieldsOf(own.Field(i), nil)
		for j := range to {
			if _, wins := said[table][to[j].Key]; wins {
				to[j].value.Set(values[j].value)
			}
		}
	}
	if err := s.check(); err != nil {
		return Settings{}, fmt.Errorf("%s, with what it inherits from %s: %w", d.name, from, err)
	}
	return s, nil
}

// reachable leaves out another way to the cluster than the file's own.
func (d Draft) reachable(inherited Inherited, own map[string]any) Inherited {
	if !d.own.Cluster.InCluster && d.own.Cluster.DiscoverCluster == "" && own["url"] == nil {
		return inherited
	}
	kept := Inherited{}
	for table, keys := range inherited {
		kept[table] = keys
	}
	cluster := map[string]any{}
	for key, value := range inherited["cluster"] {
		if key != "url" && !d.own.Cluster.InCluster {
			cluster[key] = value
		}
	}
	kept["cluster"] = cluster
	return kept
}

// NotAcceptedError is a value that a key does not take.
type NotAcceptedError struct {
	// Unknown are the names inside the value that the key does not know, as
	// paths; nil where something else is wrong, which Err tells.
	Unknown [][]string
	Err     error
}

// Error names what is wrong.
func (e *NotAcceptedError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	var names []string
	for _, path := range e.Unknown {
		names = append(names, strings.Join(path, "."))
	}
	return "unknown: " + strings.Join(names, ", ")
}

// Unwrap is Err.
func (e *NotAcceptedError) Unwrap() error { return e.Err }

// Accept says whether a key of a table takes a value, as another TOML file
// writes it. The error is a *NotAcceptedError.
func Accept(table, key string, value any) error {
	text, err := toml.Marshal(Inherited{table: {key: value}})
	if err != nil {
		return &NotAcceptedError{Err: err}
	}
	var strict *toml.StrictMissingError
	err = decode(text, new(Settings))
	if errors.As(err, &strict) {
		found := &NotAcceptedError{}
		for _, missing := range strict.Errors {
			// The first two are the table and the key.
			if len(missing.Key()) <= 2 {
				return &NotAcceptedError{Err: fmt.Errorf("there is no key %s.%s", table, key)}
			}
			found.Unknown = append(found.Unknown, missing.Key()[2:])
		}
		return found
	}
	if err != nil {
		return &NotAcceptedError{Err: explainValue(err)}
	}
	return nil
}

// explainValue is explain without the place: the text is none that anybody
// wrote.
func explainValue(err error) error {
	var decode *toml.DecodeError
	if !errors.As(err, &decode) {
		return err
	}
	message := strings.TrimPrefix(decode.Error(), "toml: ")
	// The decoder names Go's fields, which nobody has written.
	before, after, found := strings.Cut(message, " into struct field ")
	if _, kind, isType := strings.Cut(after, " of type "); found && isType {
		return fmt.Errorf("%s as a %s", before, kind)
	}
	return errors.New(message)
}
