package pipeline

import (
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/socialweb-computer/tenant-executor/examples/localrunner/job"
)

// variables reads a mapping of variables. A value is plain text or a mapping:
//
//	variables:
//	  PLAIN: text with $OTHER
//	  SECRET: {value: s3cret, masked: true}
//	  SETTINGS: {value: "a: 1\n", file: true, raw: true}
func variables(n *yaml.Node, what string) (job.Variables, error) {
	if n = resolve(n); n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return nil, nil
	}
	all, err := fields(n, what)
	if err != nil {
		return nil, err
	}
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	var vars job.Variables
	for _, f := range all {
		if !name.MatchString(f.key) {
			return nil, problem(f.at, "%s: %q is not a name for a variable", what, f.key)
		}
		v, err := variable(f.value, what+" "+f.key)
		if err != nil {
			return nil, err
		}
		v.Key = f.key
		vars = append(vars, v)
	}
	return vars, nil
}

// variable reads one value. In GitLab, file and masked variables are project
// settings; here they are written in the file, where nothing is secret.
func variable(n *yaml.Node, what string) (job.Variable, error) {
	v := job.Variable{Public: true}
	if !isMapping(n) {
		t, err := text(n, what)
		v.Value = t
		return v, err
	}
	raw, ignored := false, ""
	expand := true
	err := handlers{
		"value":       into(&v.Value, what, text),
		"file":        into(&v.File, what+" file", boolean),
		"masked":      into(&v.Masked, what+" masked", boolean),
		"raw":         into(&raw, what+" raw", boolean),
		"expand":      into(&expand, what+" expand", boolean),
		"description": into(&ignored, what+" description", text),
	}.each(n, what)
	v.Raw = raw || !expand
	v.Public = !v.Masked && !v.File
	return v, err
}

// image reads the image of a job or of a service.
func image(n *yaml.Node, what string) (job.Image, error) {
	var img job.Image
	if !isMapping(n) {
		name, err := text(n, what)
		img.Name = name
		return img, err
	}
	var aliases []string
	err := handlers{
		"name":        into(&img.Name, what+" name", text),
		"alias":       into(&aliases, what+" alias", texts),
		"entrypoint":  into(&img.Entrypoint, what+" entrypoint", texts),
		"command":     into(&img.Command, what+" command", texts),
		"pull_policy": into(&img.PullPolicies, what+" pull_policy", pullPolicies),
		"variables":   into(&img.Variables, what+" variables", variables),
		"ports":       into(&img.Ports, what+" ports", ports),
		"docker": func(n *yaml.Node) error {
			return handlers{
				"platform": into(&img.ExecutorOptions.Docker.Platform, what+" docker platform", text),
				"user":     into(&img.ExecutorOptions.Docker.User, what+" docker user", text),
			}.each(n, what+" docker")
		},
		"kubernetes": func(n *yaml.Node) error {
			return handlers{
				"user": into(&img.ExecutorOptions.Kubernetes.User, what+" kubernetes user", text),
			}.each(n, what+" kubernetes")
		},
	}.each(n, what)
	img.Alias = strings.Join(aliases, ",")
	if err == nil && img.Name == "" {
		err = problem(n, "%s: the name is missing", what)
	}
	return img, err
}

func images(n *yaml.Node, what string) ([]job.Image, error) { return list(n, what, image) }

func pullPolicies(n *yaml.Node, what string) ([]string, error) {
	return list(n, what, oneOf("always", "if-not-present", "never"))
}

func ports(n *yaml.Node, what string) ([]job.Port, error) { return list(n, what, port) }

func port(n *yaml.Node, what string) (job.Port, error) {
	p := job.Port{Protocol: "http", Name: "default_port"}
	if !isMapping(n) {
		v, err := number(n, what)
		p.Number = v
		return p, err
	}
	err := handlers{
		"number":   into(&p.Number, what+" number", number),
		"protocol": into(&p.Protocol, what+" protocol", oneOf("http", "https")),
		"name":     into(&p.Name, what+" name", text),
	}.each(n, what)
	return p, err
}

// artifact reads the archive of a job.
func artifact(n *yaml.Node, what string) (*job.Artifact, error) {
	a := &job.Artifact{
		Paths: []string{}, Exclude: []string{},
		When: job.WhenOnSuccess, Type: "archive", Format: "zip",
	}
	ignored := ""
	err := handlers{
		"paths":     into(&a.Paths, what+" paths", texts),
		"exclude":   into(&a.Exclude, what+" exclude", texts),
		"untracked": into(&a.Untracked, what+" untracked", boolean),
		"name":      into(&a.Name, what+" name", text),
		"when":      into(&a.When, what+" when", oneOf(job.WhenOnSuccess, job.WhenOnFailure, job.WhenAlways)),
		"expire_in": into(&a.ExpireIn, what+" expire_in", text),
		"expose_as": into(&ignored, what+" expose_as", text),
		"access":    into(&ignored, what+" access", text),
	}.each(n, what)
	return a, err
}

// caches reads one cache or several.
func caches(n *yaml.Node, what string) ([]job.Cache, error) {
	return list(n, what, func(n *yaml.Node, what string) (job.Cache, error) {
		c := job.Cache{
			Key: "default", Policy: "pull-push", When: job.WhenOnSuccess,
			Paths: []string{}, FallbackKeys: []string{},
		}
		err := handlers{
			"key":           into(&c.Key, what+" key", cacheKey),
			"paths":         into(&c.Paths, what+" paths", texts),
			"untracked":     into(&c.Untracked, what+" untracked", boolean),
			"policy":        into(&c.Policy, what+" policy", text),
			"when":          into(&c.When, what+" when", oneOf(job.WhenOnSuccess, job.WhenOnFailure, job.WhenAlways)),
			"fallback_keys": into(&c.FallbackKeys, what+" fallback_keys", texts),
		}.each(n, what)
		return c, err
	})
}

func cacheKey(n *yaml.Node, what string) (string, error) {
	if isMapping(n) {
		return "", problem(n, "%s: a key made from files is not supported here; write a text, which may hold variables", what)
	}
	return text(n, what)
}

// duration reads a time limit such as "30 minutes", "1h 30m" or "90".
func duration(n *yaml.Node, what string) (time.Duration, error) {
	s, err := text(n, what)
	if err != nil {
		return 0, err
	}
	d, ok := parseDuration(s)
	if !ok || d <= 0 {
		return 0, problem(n, `%s: %q is not a time such as "1h 30m" or "45 minutes"`, what, s)
	}
	return d, nil
}

func parseDuration(s string) (time.Duration, bool) {
	part := regexp.MustCompile(`^\s*(?:and\s+)?([0-9]+)\s*([a-z]*)\s*,?`)
	var total time.Duration
	rest := strings.ToLower(strings.TrimSpace(s))
	for rest != "" {
		m := part.FindStringSubmatch(rest)
		if m == nil {
			return 0, false
		}
		unit, ok := unitOf(m[2])
		if !ok {
			return 0, false
		}
		count, err := time.ParseDuration(m[1] + "ns")
		if err != nil || count > time.Duration(1<<62)/unit {
			return 0, false
		}
		total += count * unit
		rest = rest[len(m[0]):]
	}
	return total, true
}

func unitOf(name string) (time.Duration, bool) {
	switch name {
	case "", "s", "sec", "secs", "second", "seconds":
		return time.Second, true // a bare number is in seconds
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, true
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour, true
	case "d", "day", "days":
		return 24 * time.Hour, true
	case "w", "week", "weeks":
		return 7 * 24 * time.Hour, true
	default:
		return 0, false
	}
}
