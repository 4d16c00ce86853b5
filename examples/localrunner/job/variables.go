package job

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// TempProjectDir names the variable with the folder of file variables.
const TempProjectDir = "RUNNER_TEMP_PROJECT_DIR"

// Variable is one CI variable.
type Variable struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Public bool   `json:"public"`
	File   bool   `json:"file"`
	Masked bool   `json:"masked"`
	Raw    bool   `json:"raw"`
}

// Variables is a list in order of precedence: of two with the same key the
// later one counts.
type Variables []Variable

// Value returns the value of key, or "" when there is none. Of a file
// variable it is the content.
func (v Variables) Value(key string) string {
	return v.lookup(key, false)
}

// Get is like Value, but of a file variable it returns the path of its file.
func (v Variables) Get(key string) string {
	return v.lookup(key, true)
}

func (v Variables) lookup(key string, paths bool) string {
	switch {
	case key == "$":
		return "$" // "$$" in a value stands for one dollar sign
	case len(key) == 1 && strings.Contains("*#@!?0123456789", key):
		return "" // the shell's special parameters are never variables
	}
	for i := len(v) - 1; i >= 0; i-- {
		if v[i].Key != key {
			continue
		}
		if v[i].File && paths {
			return path.Join(v.Value(TempProjectDir), key)
		}
		return v[i].Value
	}
	return ""
}

// Bool reads key as a truth value: what strconv.ParseBool takes as true.
func (v Variables) Bool(key string) bool {
	b, err := strconv.ParseBool(strings.ToLower(v.Get(key)))
	return err == nil && b
}

// ExpandValue replaces $KEY and ${KEY} in s, one level deep.
func (v Variables) ExpandValue(s string) string {
	return os.Expand(s, v.Get)
}

// Expand returns a copy in which every variable that is not raw is expanded
// against the unexpanded ones, as GitLab Runner does it
// (common/spec/variables.go): a reference inside a referenced value stays as
// it is.
func (v Variables) Expand() Variables {
	out := make(Variables, len(v))
	for i, x := range v {
		if !x.Raw {
			x.Value = v.ExpandValue(x.Value)
		}
		out[i] = x
	}
	return out
}

// Overwrite sets the value of the first variable called key, and does nothing
// when there is none.
func (v Variables) Overwrite(key, value string) {
	for i := range v {
		if v[i].Key == key {
			v[i].Value = value
			return
		}
	}
}

// Masked returns the values that must not be shown.
func (v Variables) Masked() []string {
	var out []string
	for _, x := range v {
		if x.Masked && x.Value != "" {
			out = append(out, x.Value)
		}
	}
	return out
}

// Flatten resolves chains of references the way GitLab does before it sends a
// job: when a variable refers to one that itself holds a reference, the
// reference is replaced by the resolved value. References one level deep, to
// file variables, to raw variables and in circles are left for the runner.
func (v Variables) Flatten() Variables {
	out := make(Variables, len(v))
	copy(out, v)
	for i := range out {
		if !out[i].Raw && !out[i].File {
			out[i].Value = v.flatten(out[i].Value, map[string]bool{out[i].Key: true})
		}
	}
	return out
}

func (v Variables) flatten(value string, seen map[string]bool) string {
	changed := false
	flat := os.Expand(value, func(key string) string {
		target, ok := v.find(key)
		if !ok || target.File || target.Raw || seen[key] || !strings.Contains(target.Value, "$") {
			return reference(key)
		}
		changed = true
		seen[key] = true
		defer delete(seen, key)
		return v.flatten(target.Value, seen)
	})
	if !changed {
		return value // not even the spelling of a reference changes
	}
	return flat
}

func (v Variables) find(key string) (Variable, bool) {
	for i := len(v) - 1; i >= 0; i-- {
		if v[i].Key == key {
			return v[i], true
		}
	}
	return Variable{}, false
}

// reference writes a reference that os.Expand has taken apart.
func reference(key string) string {
	if key == "$" || len(key) == 1 && strings.Contains("*#@!?0123456789", key) {
		return "$" + key
	}
	return "${" + key + "}"
}
