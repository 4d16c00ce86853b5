package pipeline

import (
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/keys"
)

// field is one entry of a mapping.
type field struct {
	key   string
	at    *yaml.Node
	value *yaml.Node
}

// problem is an error with its place in the file.
func problem(at *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", at.Line, fmt.Errorf(format, args...))
}

// resolve follows aliases.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// fields returns the entries of a mapping in order. What "<<" brings in comes
// last and does not replace what is written out.
func fields(n *yaml.Node, what string) ([]field, error) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return nil, problem(n, "%s: want keys with values", what)
	}
	var own, merged []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Tag == "!!merge" {
			m, err := mergedFields(value, what)
			if err != nil {
				return nil, err
			}
			merged = append(merged, m...)
			continue
		}
		if resolve(key).Kind != yaml.ScalarNode {
			return nil, problem(key, "%s: a key must be plain text", what)
		}
		if has(own, key.Value) {
			return nil, problem(key, "%s: %q is there twice", what, key.Value)
		}
		own = append(own, field{key: resolve(key).Value, at: key, value: resolve(value)})
	}
	for _, f := range merged {
		if !has(own, f.key) {
			own = append(own, f)
		}
	}
	return own, nil
}

func mergedFields(n *yaml.Node, what string) ([]field, error) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		return fields(n, what)
	}
	var all []field
	for _, item := range n.Content {
		f, err := fields(item, what)
		if err != nil {
			return nil, err
		}
		all = append(all, f...)
	}
	return all, nil
}

func has(list []field, key string) bool {
	return slices.ContainsFunc(list, func(f field) bool { return f.key == key })
}

// handlers read the values of a mapping's known keys.
type handlers map[string]func(*yaml.Node) error

// each calls the handler of every key, and refuses keys without one.
func (h handlers) each(n *yaml.Node, what string) error {
	all, err := fields(n, what)
	if err != nil {
		return err
	}
	for _, f := range all {
		handle, ok := h[f.key]
		if !ok {
			return h.unknown(f, what)
		}
		if err := handle(f.value); err != nil {
			return err
		}
	}
	return nil
}

func (h handlers) unknown(f field, what string) error {
	known := make([]string, 0, len(h))
	for k := range h {
		known = append(known, k)
	}
	slices.Sort(known)
	return problem(f.at, "%s: unknown key %q%s", what, f.key, keys.Hint(f.key, known))
}

// into returns a handler that reads a value with one of the functions below.
func into[T any](to *T, what string, read func(*yaml.Node, string) (T, error)) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		v, err := read(n, what)
		if err == nil {
			*to = v
		}
		return err
	}
}

func text(n *yaml.Node, what string) (string, error) {
	n = resolve(n)
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", problem(n, "%s: want plain text", what)
	case n.Tag == "!reference":
		return "", problem(n, "%s: !reference is not supported here; use a YAML anchor", what)
	case n.Tag == "!!null":
		return "", nil
	}
	return n.Value, nil
}

func boolean(n *yaml.Node, what string) (bool, error) {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		return false, problem(n, "%s: want true or false", what)
	}
	return strconv.ParseBool(n.Value)
}

func number(n *yaml.Node, what string) (int, error) {
	n = resolve(n)
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		return 0, problem(n, "%s: want a whole number", what)
	}
	return v, nil
}

// texts reads a list of texts; one text alone is a list too. Lists inside the
// list are taken apart, as GitLab does it for scripts made with anchors.
func texts(n *yaml.Node, what string) ([]string, error) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
			return nil, nil
		}
		t, err := text(n, what)
		return []string{t}, err
	}
	if n.Tag == "!reference" {
		return nil, problem(n, "%s: !reference is not supported here; use a YAML anchor", what)
	}
	out := []string{}
	for _, item := range n.Content {
		more, err := texts(item, what)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// list reads a list of things; one thing alone is a list too.
func list[T any](n *yaml.Node, what string, read func(*yaml.Node, string) (T, error)) ([]T, error) {
	n = resolve(n)
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	} else if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, nil
	}
	out := make([]T, 0, len(items))
	for _, item := range items {
		v, err := read(item, what)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func isMapping(n *yaml.Node) bool { return resolve(n).Kind == yaml.MappingNode }

func oneOf(allowed ...string) func(*yaml.Node, string) (string, error) {
	return func(n *yaml.Node, what string) (string, error) {
		v, err := text(n, what)
		if err != nil {
			return "", err
		}
		if !slices.Contains(allowed, v) {
			return "", problem(n, "%s: %q is not one of %q%s", what, v, allowed, keys.Hint(v, allowed))
		}
		return v, nil
	}
}
