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

// Table is one table of the file, or the entries of a list of tables.
type Table struct {
	Name, Doc string
	// List is whether the table is written as [[Name]], once for each entry.
	List bool
	Keys []Key
}

// Tables lists all that the file may hold, in the order of the file.
func Tables() []Table {
	var tables []Table
	root := reflect.TypeFor[Settings]()
	for i := range root.NumField() {
		field := root.Field(i)
		tables = append(tables, tablesOf(field.Tag.Get("toml"), field, field.Type, []int{i})...)
	}
	return tables
}

// tablesOf is the table of a field, and behind it those of its lists of
// tables. The keys of a list have no place in the Settings of their own, and
// so no index.
func tablesOf(name string, field reflect.StructField, of reflect.Type, index []int) []Table {
	table := Table{Name: name, Doc: field.Tag.Get("doc"), List: index == nil}
	var lists []Table
	for j := range of.NumField() {
		inner := of.Field(j)
		if inner.Type.Kind() == reflect.Slice && inner.Type.Elem().Kind() == reflect.Struct {
			lists = append(lists, tablesOf(name+"."+inner.Tag.Get("toml"), inner, inner.Type.Elem(), nil)...)
			continue
		}
		key := Key{
			Table:   name,
			Name:    inner.Tag.Get("toml"),
			Type:    typeName(inner.Type),
			Default: inner.Tag.Get("default"),
			Example: inner.Tag.Get("example"),
			Doc:     inner.Tag.Get("doc"),
		}
		if index != nil {
			key.index = append(append([]int{}, index...), j)
		}
		table.Keys = append(table.Keys, key)
	}
	return append([]Table{table}, lists...)
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]():
		return "time"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map:
		return "table"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		return "number"
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
