package stats

import (
	"slices"
	"time"

	"github.com/socialweb-computer/tenant-executor/stages/course"
)

// session is a time in which a cluster has Pods, with no pause as long as the
// hold. Its nodes stay until the end of it.
type session struct{ from, to time.Time }

// sessions are those of each cluster, in order. The end of each is that of the
// hold after its last Pod.
type sessions map[string][]session

// sessionsOf finds the sessions that the courses tell of. Pods of others, that
// this host knows nothing of, may have made them longer.
func sessionsOf(courses []course.Course, seen []course.Sighting, hold time.Duration, now time.Time) sessions {
	all := sessions{}
	for i := range courses {
		c := &courses[i]
		until := end(c, now)
		if c.Finished() {
			until = until.Add(c.Linger.Duration()) // a placeholder is a Pod as well
		}
		all[c.Cluster] = append(all[c.Cluster], session{c.Begun, until.Add(hold)})
	}
	for _, s := range seen {
		all[s.Cluster] = append(all[s.Cluster], session{s.From, s.To.Add(hold)})
	}
	for cluster, of := range all {
		slices.SortFunc(of, func(a, b session) int { return a.from.Compare(b.from) })
		merged := of[:1]
		for _, s := range of[1:] {
			if last := &merged[len(merged)-1]; s.from.After(last.to) {
				merged = append(merged, s)
			} else {
				last.to = latest(last.to, s.to)
			}
		}
		all[cluster] = merged
	}
	return all
}

// end is the end of the session that a time is in.
func (s sessions) end(cluster string, at time.Time) time.Time {
	for _, one := range s[cluster] {
		if !at.Before(one.from) && !at.After(one.to) {
			return one.to
		}
	}
	return at // not reached: every Pod is of a session
}
