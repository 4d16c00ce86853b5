package admission

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Quota is a ResourceQuota that an object does not fit into.
type Quota struct {
	Name string
	// Usage is what the object does not fit for, in the order of names.
	Usage []Usage
}

// Usage is one resource of a Quota.
type Usage struct {
	Resource               string
	Requested, Used, Limit resource.Quantity
}

// Beyond is the usage that no other object is the reason of: more is requested
// than the quota allows altogether.
func (q Quota) Beyond() []Usage {
	var all []Usage
	for _, u := range q.Usage {
		if u.Requested.Cmp(u.Limit) > 0 {
			all = append(all, u)
		}
	}
	return all
}

// String says what the quota has left to give.
func (q Quota) String() string {
	var all []string
	for _, u := range q.Usage {
		text := fmt.Sprintf("%s of %s %s used", u.Used.String(), u.Limit.String(), u.Resource)
		if !one(u.Requested) {
			text += fmt.Sprintf(", %s needed", u.Requested.String())
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// one says whether a quantity is that of a single object, which goes without
// saying.
func one(q resource.Quantity) bool { return q.Cmp(resource.MustParse("1")) == 0 }

// exceeded is one quota in a refusal. There can be several, and each can be about
// several resources, as NAME=QUANTITY.
var exceeded = regexp.MustCompile(`exceeded quota: ([^,\s]+), requested: ([^\s]+), used: ([^\s]+), limited: ([^\s]+)`)

// quotasOf are the quotas in a refusal. One whose figures cannot be read is left
// out: nobody knows then whether waiting helps.
func quotasOf(message string) []Quota {
	var all []Quota
	for _, m := range exceeded.FindAllStringSubmatch(message, -1) {
		requested, used, limited := figures(m[2]), figures(m[3]), figures(m[4])
		q := Quota{Name: m[1]}
		for name, r := range requested {
			limit, known := limited[name]
			if !known {
				continue
			}
			q.Usage = append(q.Usage, Usage{name, r, used[name], limit})
		}
		if len(q.Usage) == 0 {
			continue
		}
		slices.SortFunc(q.Usage, func(a, b Usage) int { return strings.Compare(a.Resource, b.Resource) })
		all = append(all, q)
	}
	return all
}

func figures(text string) map[string]resource.Quantity {
	all := map[string]resource.Quantity{}
	for pair := range strings.SplitSeq(strings.TrimRight(text, ",;]"), ",") {
		name, value, found := strings.Cut(pair, "=")
		if q, err := resource.ParseQuantity(value); found && err == nil {
			all[name] = q
		}
	}
	return all
}
