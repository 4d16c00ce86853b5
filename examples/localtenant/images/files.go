package images

import (
	"context"
	"encoding/json"
	"fmt"
)

// Files is a layer of entries that are written out in the recipe.
type Files struct {
	// Name says what they are for.
	Name string
	// Entries are put in one after the other; a later one replaces an
	// earlier one of the same path.
	Entries []Entry
}

// Label is the name.
func (f Files) Label() string { return f.Name }

func (f Files) inputs(context.Context, *workshop) (string, error) {
	text, err := json.Marshal(f.Entries)
	if err != nil {
		return "", fmt.Errorf("describe the entries of %q: %w", f.Name, err)
	}
	return string(text), nil
}

func (f Files) fill(_ context.Context, _ *workshop, t *tree) error {
	for _, e := range f.Entries {
		if err := t.add(e); err != nil {
			return err
		}
	}
	return nil
}
