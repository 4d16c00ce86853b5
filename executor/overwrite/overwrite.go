// Package overwrite is what a job sets of its Pod by variables whose names
// begin with KUBERNETES_: as far as the operator's settings let it, and with
// the names and rules of the kubernetes executor
// (executors/kubernetes/overwrites.go).
package overwrite

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/socialweb-computer/tenant-executor/executor/failure"
	"github.com/socialweb-computer/tenant-executor/executor/job"
	"github.com/socialweb-computer/tenant-executor/executor/pod"
	"github.com/socialweb-computer/tenant-executor/executor/settings"
)

const prefix = "KUBERNETES_"

// bearerToken would have the job act on the cluster as somebody else. No
// setting allows it.
const bearerToken = prefix + "BEARER_TOKEN"

// Result is what became of a job's variables.
type Result struct {
	// Settings are the operator's with what the job has set.
	Settings settings.Kubernetes
	// Lines say what was set, for the job log.
	Lines []string
	// Ignored are variables that have no effect, each with the reason.
	Ignored []Ignored
}

// Ignored is a variable without effect.
type Ignored struct{ Variable, Reason string }

// Apply sets what the job's variables say. The error is a *failure.Failure of
// the job where one of them is not allowed or makes no sense; the settings of
// the Result are then the operator's own, and given settings never change.
func Apply(given settings.Kubernetes, j job.Job, variables job.Environment) (Result, error) {
	a := applier{job: j, variables: variables, Result: Result{Settings: given}}
	if err := a.all(); err != nil {
		return Result{Settings: given}, err
	}
	return a.Result, nil
}

type applier struct {
	job       job.Job
	variables job.Environment
	Result
}

func (a *applier) all() error {
	if err := a.texts(); err != nil {
		return err
	}
	if err := a.maps(); err != nil {
		return err
	}
	if a.variables.Variable(bearerToken) != "" {
		a.ignore(bearerToken, "tokens of jobs are not used")
	}
	return a.resources()
}

func (a *applier) ignore(variable, reason string) {
	a.Ignored = append(a.Ignored, Ignored{variable, reason})
}

func (a *applier) say(format string, args ...any) {
	a.Lines = append(a.Lines, fmt.Sprintf(format, args...))
}

func refuse(variable, value, format string, args ...any) error {
	return failure.New(failure.Overwrite, "variable %s is %q: %s", variable, value, fmt.Sprintf(format, args...))
}

// allow says whether the setting of a key lets a variable's value pass; the
// error is a refusal. The regular expression need not match the whole value.
func (a *applier) allow(key, variable, value string) (bool, error) {
	gate := key + "_overwrite_allowed"
	field, _ := a.Settings.Field(gate)
	pattern := field.Text()
	if pattern == "" {
		a.ignore(variable, "kubernetes."+gate+" is not set")
		return false, nil
	}
	allowed, err := regexp.Compile(pattern)
	if err != nil {
		return false, failure.Wrap(failure.Settings, err, "kubernetes.%s", gate)
	}
	if !allowed.MatchString(value) {
		return false, refuse(variable, value, "it has to match %q, as kubernetes.%s says", pattern, gate)
	}
	return true, nil
}

// texts are settings that one variable sets.
func (a *applier) texts() error {
	for _, row := range []struct {
		key, variable string
		problems      func(string) []string
	}{
		{"namespace", prefix + "NAMESPACE_OVERWRITE", validation.IsDNS1123Label},
		{"service_account", prefix + "SERVICE_ACCOUNT_OVERWRITE", validation.IsDNS1123Subdomain},
	} {
		value := a.variables.Variable(row.variable)
		if value == "" {
			continue
		}
		ok, err := a.allow(row.key, row.variable, value)
		if err != nil {
			return err
		}
		field, found := a.Settings.Field(row.key)
		if !ok || !found {
			continue
		}
		if problems := row.problems(value); len(problems) > 0 {
			return refuse(row.variable, value, "%s", strings.Join(problems, "; "))
		}
		field.SetText(value)
		a.say("%q overwritten with %q", field.Name, value)
	}
	return nil
}

// maps are settings to which each variable of a prefix adds.
func (a *applier) maps() error {
	for _, row := range []struct {
		key, prefix string
		split       func(string) (name, value string, ok bool)
		form        string
		check       func(name, value string) []string
	}{
		{"pod_labels", prefix + "POD_LABELS_", equals, "NAME=VALUE", checkName},
		{"pod_annotations", prefix + "POD_ANNOTATIONS_", equals, "NAME=VALUE", checkName},
		{"node_selector", prefix + "NODE_SELECTOR_", equals, "NAME=VALUE", checkLabel},
		{"node_tolerations", prefix + "NODE_TOLERATIONS_", toleration, "KEY[=VALUE]:EFFECT", checkToleration},
	} {
		field, found := a.Settings.Field(row.key)
		if !found {
			continue
		}
		// The table is the operator's own until it is changed.
		table := maps.Clone(field.Map())
		for _, variable := range a.named(row.prefix) {
			text := a.variables.Variable(variable)
			ok, err := a.allow(row.key, variable, text)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			name, value, ok := row.split(text)
			if !ok {
				return refuse(variable, text, "write it as %s", row.form)
			}
			if problems := row.check(name, value); len(problems) > 0 {
				return refuse(variable, text, "%s", strings.Join(problems, "; "))
			}
			if strings.HasPrefix(row.key, "pod_") && pod.ProtectedFromJobs(name) {
				a.ignore(variable, name+" belongs to the runner or the driver")
				continue
			}
			if table == nil {
				table = map[string]string{}
			}
			table[name] = value
			a.say("%q %q overwritten with %q", field.Name, name, value)
		}
		field.SetMap(table)
	}
	return nil
}

// named are the job's variables of a prefix, in the order in which GitLab sent
// them: where two set one name, the later counts. Those of the runner's own
// environment come first. One that is empty is none: it cannot be told from one
// that a job takes back.
func (a *applier) named(prefix string) []string {
	var names []string
	for _, name := range a.variables.Names() {
		if strings.HasPrefix(name, prefix) && a.variables.Variable(name) != "" {
			names = append(names, name)
		}
	}
	place := map[string]int{}
	for i, v := range a.job.Variables {
		place[v.Key] = i + 1
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(place[x], place[y]), strings.Compare(x, y))
	})
	return names
}

func equals(text string) (name, value string, ok bool) { return strings.Cut(text, "=") }

// toleration splits a toleration as the setting's table holds it: KEY[=VALUE]
// and the effect. Neither is needed.
func toleration(text string) (name, value string, ok bool) {
	name, value, _ = strings.Cut(text, ":")
	return name, value, true
}

func checkName(name, _ string) []string { return validation.IsQualifiedName(name) }

func checkLabel(name, value string) []string {
	return append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...)
}

func checkToleration(name, effect string) []string {
	var problems []string
	if key, value, _ := strings.Cut(name, "="); key != "" {
		problems = checkLabel(key, value)
	}
	if !slices.Contains([]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
		problems = append(problems, fmt.Sprintf("the effect is %q: use NoSchedule, PreferNoSchedule or NoExecute", effect))
	}
	return problems
}

// resources are settings that a variable sets up to a limit.
func (a *applier) resources() error {
	set := map[string]string{}
	for _, field := range a.Settings.Limited() {
		variable := prefix + strings.ToUpper(field.Key)
		value := a.variables.Variable(variable)
		if value == "" {
			continue
		}
		if field.Limit == "" {
			a.ignore(variable, "kubernetes."+field.LimitKey+" is not set")
			continue
		}
		if strings.HasPrefix(field.Key, "service_") {
			// Each service may have variables of its own, which come first: they
			// are looked at where the services are made.
			continue
		}
		if err := Quantity(variable, value, field.LimitKey, field.Limit); err != nil {
			return err
		}
		field.SetText(value)
		set[field.Key] = variable
		a.say("%q overwritten with %q", field.Name, value)
	}
	return a.fit(set)
}

// Quantity refuses a variable's value that is no quantity, or above the limit
// that a key sets. A limit of 0 is none to Kubernetes, so it would be above
// all.
func Quantity(variable, value, limitKey, limit string) error {
	asked, err := resource.ParseQuantity(value)
	if err != nil || asked.Sign() < 0 {
		return refuse(variable, value, "write a Kubernetes quantity such as 500m, 2 or 4Gi")
	}
	if asked.Sign() == 0 && strings.HasSuffix(variable, "_LIMIT") {
		return refuse(variable, value, "a limit has to be above 0")
	}
	most, err := resource.ParseQuantity(limit)
	if err != nil {
		return failure.Wrap(failure.Settings, err, "kubernetes.%s", limitKey)
	}
	if asked.Cmp(most) > 0 {
		return refuse(variable, value, "the most that the operator allows is %s (kubernetes.%s)", limit, limitKey)
	}
	return nil
}

// fit refuses a request above its limit where the job has set one of them: the
// cluster would not take the Pod.
func (a *applier) fit(set map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		base := strings.TrimSuffix(strings.TrimSuffix(key, "_request"), "_limit")
		request, hasRequest := a.quantity(base + "_request")
		limit, hasLimit := a.quantity(base + "_limit")
		if hasRequest && hasLimit && request.Cmp(limit) > 0 {
			return refuse(set[key], a.text(key), "that makes %s_request %s, more than %s_limit, which is %s",
				base, a.text(base+"_request"), base, a.text(base+"_limit"))
		}
	}
	return nil
}

func (a *applier) text(key string) string {
	field, _ := a.Settings.Field(key)
	return field.Text()
}

func (a *applier) quantity(key string) (resource.Quantity, bool) {
	field, found := a.Settings.Field(key)
	if !found || field.Text() == "" {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(field.Text())
	return q, err == nil
}
