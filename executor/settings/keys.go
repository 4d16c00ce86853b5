package settings

import (
	"reflect"
	"strings"
)

// Key is one key of the file, as the struct tags describe it.
type Key struct {
	// Table and Name are where it stands: [Table], Name = …
	Table, Name string
	// Type is the kind of value: string, number, bool, list, numbers (a list of
	// them), table or time.
	Type string
	// Default is the value of a key left out, Example one for a key without
	// default; "" where there is none.
	Default, Example string
	Doc              string
	// Parity says in which way a key of [runners.kubernetes] differs here, ""
	// where it does not.
	Parity string

	index []int // of the field, from Settings down
}

// Path is the key's full name, table and all.
func (k Key) Path() string { return k.Table + "." + k.Name }

// Table is one table of the file, or the entries of a list of tables.
type Table struct {
	Name, Doc string
	// List is whether the table is written as [[Name]], once for each entry.
	List bool
	// Inner is whether the table stands in another one.
	Inner bool
	// Parity is as that of a Key.
	Parity string
	Keys   []Key
}

// Tables lists all that the file may hold, in the order of the file.
func Tables() []Table {
	var tables []Table
	root := reflect.TypeFor[Settings]()
	for i := range root.NumField() {
		field := root.Field(i)
		tables = append(tables, tablesOf(Table{Name: field.Tag.Get("toml"), Doc: field.Tag.Get("doc")}, field.Type, []int{i})...)
	}
	return tables
}

// tablesOf is a table with the keys of a struct, and behind it the tables
// inside it. The keys of a list of tables, and of a table that may be missing,
// have no place in the Settings of their own, and so no index.
func tablesOf(table Table, of reflect.Type, index []int) []Table {
	var inside []Table
	collect(&table, &inside, of, index)
	return append([]Table{table}, inside...)
}

// collect adds the keys of a struct to a table. The fields of an embedded
// struct are the table's own.
func collect(table *Table, inside *[]Table, of reflect.Type, index []int) {
	for j := range of.NumField() {
		field := of.Field(j)
		var place []int
		if index != nil {
			place = append(append([]int{}, index...), j)
		}
		doc, parity := field.Tag.Get("doc"), field.Tag.Get("parity")
		switch kind := field.Type; {
		case field.Anonymous:
			collect(table, inside, kind, place)
		case kind.Kind() == reflect.Slice && kind.Elem().Kind() == reflect.Struct:
			*inside = append(*inside, tablesOf(Table{Name: table.Name + "." + field.Tag.Get("toml"), Doc: doc, Parity: parity, List: true}, kind.Elem(), nil)...)
		case kind.Kind() == reflect.Struct:
			*inside = append(*inside, tablesOf(Table{Name: table.Name + "." + field.Tag.Get("toml"), Doc: doc, Parity: parity, Inner: true}, kind, place)...)
		case kind.Kind() == reflect.Pointer && kind.Elem().Kind() == reflect.Struct:
			*inside = append(*inside, tablesOf(Table{Name: table.Name + "." + field.Tag.Get("toml"), Doc: doc, Parity: parity, Inner: true}, kind.Elem(), nil)...)
		default:
			table.Keys = append(table.Keys, Key{
				Table: table.Name, Name: field.Tag.Get("toml"), Type: typeName(kind),
				Default: field.Tag.Get("default"), Example: field.Tag.Get("example"), Doc: doc, Parity: parity,
				index: place,
			})
		}
	}
}

func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem() // a key whose absence is not its zero value
	}
	switch {
	case t == reflect.TypeFor[Duration]():
		return "time"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int32, t.Kind() == reflect.Int64, t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Int64:
		return "numbers"
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
	case "numbers":
		return "[" + strings.ReplaceAll(value, ",", ", ") + "]"
	case "list":
		return `["` + strings.ReplaceAll(value, ",", `", "`) + `"]`
	case "table":
		name, v, _ := strings.Cut(value, "=")
		return `{ "` + name + `" = "` + v + `" }`
	default:
		return `"` + value + `"`
	}
}
