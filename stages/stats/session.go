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
func sessionsOf(courses []course.Course, hold time.Duration, now time.Time) sessions {
	all := sessions{}
	for i := range courses {
		c := &courses[i]
		until := end(c, now)
		if c.Finished() {
			until = until.Add(c.Linger.Duration()) // a placeholder is a Pod as well
		}
		all[c.Cluster] = append(all[c.Cluster], session{c.Begun, until.Add(hold)})
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

// end is the end of the session that a course is of.
func (s sessions) end(c *course.Course) time.Time {
	for _, one := range s[c.Cluster] {
		if !c.Begun.Before(one.from) && !c.Begun.After(one.to) {
			return one.to
		}
	}
	return c.Last() // not reached: every course is of a session
}
