package settings

import (
	"reflect"
	"strings"
)

// Field is one key of the [kubernetes] table in a Kubernetes, for what has to
// treat keys by their names: what a job may overwrite, what is inherited.
type Field struct {
	// Key is the name in the file, Name that of the Go field.
	Key, Name string
	// Parity is as that of Key.
	Parity string

	value reflect.Value
}

// Fields are all keys of the table, in the order of the file. Setting one
// changes k.
func (k *Kubernetes) Fields() []Field {
	return fieldsOf(reflect.ValueOf(k).Elem(), nil)
}

func fieldsOf(value reflect.Value, all []Field) []Field {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if field.Anonymous {
			all = fieldsOf(value.Field(i), all)
			continue
		}
		all = append(all, Field{Key: field.Tag.Get("toml"), Name: field.Name, Parity: field.Tag.Get("parity"), value: value.Field(i)})
	}
	return all
}

// Field is the key of a name, and whether there is one.
func (k *Kubernetes) Field(key string) (Field, bool) {
	for _, f := range k.Fields() {
		if f.Key == key {
			return f, true
		}
	}
	return Field{}, false
}

// Text is the value of a key with text, "" for any other.
func (f Field) Text() string {
	if !f.value.IsValid() || f.value.Kind() != reflect.String {
		return ""
	}
	return f.value.String()
}

// SetText sets a key with text, and says whether it is one.
func (f Field) SetText(text string) bool {
	if f.value.Kind() != reflect.String {
		return false
	}
	f.value.SetString(text)
	return true
}

// Map is the value of a table of names and texts, nil for any other key.
func (f Field) Map() map[string]string {
	table, _ := f.value.Interface().(map[string]string)
	return table
}

// SetMap sets a table of names and texts, and says whether the key is one.
func (f Field) SetMap(table map[string]string) bool {
	if _, ok := f.value.Interface().(map[string]string); !ok {
		return false
	}
	f.value.Set(reflect.ValueOf(table))
	return true
}

// Take sets the key to what it is in other.
func (f Field) Take(other *Kubernetes) {
	if from, ok := other.Field(f.Key); ok {
		f.value.Set(from.value)
	}
}

// overwriteSuffix ends the names of keys that limit what a job may set a
// resource to.
const overwriteSuffix = "_overwrite_max_allowed"

// Limited are the keys that a job may set up to a limit, with the value of
// that limit.
func (k *Kubernetes) Limited() []LimitedField {
	var all []LimitedField
	for _, limit := range k.Fields() {
		key, found := strings.CutSuffix(limit.Key, overwriteSuffix)
		if !found {
			continue
		}
		if field, ok := k.Field(key); ok {
			all = append(all, LimitedField{Field: field, LimitKey: limit.Key, Limit: limit.Text()})
		}
	}
	return all
}

// LimitedField is a key with a limit for jobs.
type LimitedField struct {
	Field
	// LimitKey is the key with the limit; Limit is its value, "" where jobs may
	// not set the field.
	LimitKey, Limit string
}
