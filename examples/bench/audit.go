package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// driverUser is the user of the driver's client certificate.
const driverUser = "tenant-executor"

// requests counts the driver's requests so far by verb and resource, from the
// apiserver's audit log.
func (b *bench) requests(ctx context.Context) (map[string]int, error) {
	status, err := b.bed.Status(ctx)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(status.APIServer.AuditLog)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	counted, seen := map[string]int{}, map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			AuditID string `json:"auditID"`
			Verb    string `json:"verb"`
			User    struct {
				Username string `json:"username"`
			} `json:"user"`
			ObjectRef struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("reading %s: %w", status.APIServer.AuditLog, err)
		}
		// A request has an event for each of its stages.
		if event.User.Username != driverUser || seen[event.AuditID] {
			continue
		}
		seen[event.AuditID] = true
		counted[event.Verb+" "+strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")]++
	}
	return counted, lines.Err()
}

func difference(before, after map[string]int) map[string]int {
	d := map[string]int{}
	for kind, n := range after {
		if n > before[kind] {
			d[kind] = n - before[kind]
		}
	}
	return d
}

func sorted(counted map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counted), func(a, b string) int {
		return cmp.Or(cmp.Compare(counted[b], counted[a]), cmp.Compare(a, b))
	})
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	ordered := slices.Sorted(slices.Values(all))
	return ordered[len(ordered)/2]
}

func longest(all []time.Duration) time.Duration { return slices.Max(all) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func seconds(d time.Duration) string { return fmt.Sprintf("%6.3f s", d.Seconds()) }
