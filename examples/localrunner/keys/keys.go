// Package keys helps to report a key that a file must not have.
package keys

import (
	"fmt"
	"slices"
)

// Nearest returns the candidate that is most like key, or "" when none is
// close enough to be what the writer meant.
func Nearest(key string, candidates []string) string {
	best, bestDistance := "", max(2, len(key)/3)+1
	for _, c := range candidates {
		if d := distance(key, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// Hint returns "; did you mean NEAREST?", or "" when nothing is near.
func Hint(key string, candidates []string) string {
	if n := Nearest(key, candidates); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

// distance is the number of single-character edits between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := slices.Min([]int{row[j] + 1, row[j+1] + 1, diagonal + cost})
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
