package settings

import (
	"reflect"
	"strings"
)

// Key is one key of the file, as the struct tags describe it.
type Key struct {
	// Table and Name are where it stands: [Table], Name = …
	Table, Name string
	// Type is the kind of value: string, number, bool, list, table or time.
	Type string
	// Default is the value of a key left out, Example one for a key without
	// default; "" where there is none.
	Default, Example string
	Doc              string

	index []int // of the field, from Settings down
}

// Path is the key's full name, table and all.
func (k Key) Path() string { return k.Table + "." + k.Name }

// Table is one table of the file.
type Table struct {
	Name, Doc string
	Keys      []Key
}

// Tables lists all that the file may hold, in the order of the file.
func Tables() []Table {
	var tables []Table
	root := reflect.TypeFor[Settings]()
	for i := range root.NumField() {
		field := root.Field(i)
		table := Table{Name: field.Tag.Get("toml"), Doc: field.Tag.Get("doc")}
		for j := range field.Type.NumField() {
			inner := field.Type.Field(j)
			table.Keys = append(table.Keys, Key{
				Table:   table.Name,
				Name:    inner.Tag.Get("toml"),
				Type:    typeName(inner.Type),
				Default: inner.Tag.Get("default"),
				Example: inner.Tag.Get("example"),
				Doc:     inner.Tag.Get("doc"),
				index:   []int{i, j},
			})
		}
		tables = append(tables, table)
	}
	return tables
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]():
		return "time"
	case t.Kind() == reflect.Int:
		return "number"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map:
		return "table"
	default:
		return "string"
	}
}

// TOML is a value of this key as it is written in the file.
func (k Key) TOML(value string) string {
	switch k.Type {
	case "number", "bool":
		return value
	case "list":
		return `["` + strings.ReplaceAll(value, ",", `", "`) + `"]`
	case "table":
		name, v, _ := strings.Cut(value, "=")
		return `{ "` + name + `" = "` + v + `" }`
	default:
		return `"` + value + `"`
	}
}
