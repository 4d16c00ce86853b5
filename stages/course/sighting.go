package course

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Sighting is a node that a placeholder of the policies has held for a time, as
// the keeper of warm nodes has seen it.
type Sighting struct {
	Cluster string    `json:"cluster"`
	Node    string    `json:"node"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
}

// sightingsFile holds them, oldest first.
const sightingsFile = "placeholders"

// Bounds of the sightings.
const (
	mostSightings = 300
	// longestGap is how long a keeper may not have looked without the sighting
	// being another one: it looks every ten seconds, and may be restarted.
	longestGap = time.Minute
)

// Sightings are what keepers have seen. What cannot be read is none.
func (b *Book) Sightings() []Sighting {
	text, err := b.Folder().ReadFile(sightingsFile)
	if err != nil {
		return nil
	}
	var all []Sighting
	if json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// See notes which nodes of a cluster placeholders hold now. Of two keepers at
// once the last to write wins; they see the same.
func (b *Book) See(cluster string, nodes []string, now time.Time) error {
	if b == nil || len(nodes) == 0 {
		return nil
	}
	now = stamp(now)
	all := b.Sightings()
	for _, node := range nodes {
		at := slices.IndexFunc(all, func(s Sighting) bool {
			return s.Cluster == cluster && s.Node == node && now.Sub(s.To) <= longestGap
		})
		if at < 0 {
			all = append(all, Sighting{cluster, node, now, now})
		} else {
			all[at].To = now
		}
	}
	text, err := json.Marshal(all[max(0, len(all)-mostSightings):])
	if err != nil {
		return fmt.Errorf("writing down the placeholders: %w", err)
	}
	return b.folder.WriteLight(sightingsFile, append(text, '\n'))
}
