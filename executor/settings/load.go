package settings

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/pelletier/go-toml/v2"
)

// Parse reads the text of a file named name (for its errors), fills in the
// defaults and checks every value. Its error lists all that is wrong.
func Parse(name string, text []byte) (Settings, error) {
	draft, err := Read(name, text)
	if err != nil {
		return Settings{}, err
	}
	return draft.Settings()
}

// decode reads a text into settings, where every key has to be known.
func decode(text []byte, into *Settings) error {
	return toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(into)
}

// Defaults are the settings of an empty file. They are not complete: an empty
// file does not pass Parse.
func Defaults() Settings {
	var s Settings
	value := reflect.ValueOf(&s).Elem()
	for _, table := range Tables() {
		for _, key := range table.Keys {
			if key.Default != "" && key.index != nil {
				setDefault(value.FieldByIndex(key.index), key)
			}
		}
	}
	return s
}

func setDefault(field reflect.Value, key Key) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	var err error
	switch key.Type {
	case "number":
		var n int64
		n, err = strconv.ParseInt(key.Default, 10, 64)
		field.SetInt(n)
	case "bool":
		var b bool
		b, err = strconv.ParseBool(key.Default)
		field.SetBool(b)
	default:
		field.SetString(key.Default)
	}
	if err != nil {
		panic("settings: default of " + key.Path() + ": " + err.Error())
	}
}

// explain turns the decoder's errors into ones that say where and what to do.
func explain(err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) {
		var all []error
		for _, missing := range strict.Errors {
			line, _ := missing.Position()
			all = append(all, unknownKey(line, missing.Key()))
		}
		return errors.Join(all...)
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, column := decode.Position()
		where := fmt.Sprintf("line %d, column %d", line, column)
		if key := strings.Join(decode.Key(), "."); key != "" {
			where += ", key " + key
		}
		return fmt.Errorf("%s: %w", where, err)
	}
	return err
}

func unknownKey(line int, key []string) error {
	path := strings.Join(key, ".")
	if near := nearest(path); near != "" {
		return fmt.Errorf("line %d: unknown key %q; did you mean %q?", line, path, near)
	}
	return fmt.Errorf("line %d: unknown key %q; examples/config.toml shows all keys", line, path)
}

// nearest is the known key or table that a mistyped one resembles, "" if none
// does. A key in the wrong table is found by its own name.
func nearest(path string) string {
	_, name, _ := strings.Cut(path, ".")
	best, bestDistance := "", 1+len(path)/2
	consider := func(candidate string, distance int) {
		if distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	for _, table := range Tables() {
		consider(table.Name, levenshtein.Distance(path, table.Name, nil))
		for _, key := range table.Keys {
			consider(key.Path(), levenshtein.Distance(path, key.Path(), nil))
			if name == key.Name || path == key.Name {
				consider(key.Path(), 0)
			}
		}
	}
	return best
}
