package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/socialweb-computer/tenant-executor/executor/settings"
	"github.com/socialweb-computer/tenant-executor/kube/cluster"
	"github.com/socialweb-computer/tenant-executor/stages"
)

// writableByOthers are the mode bits by which others than the owner change a
// file.
const writableByOthers = 0o022

func judgeConfigFile(path string, info fs.FileInfo, err error) Result {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed(path+" is not there", "write it (examples/config.toml shows all keys), or name another file with --config")
	case errors.Is(err, fs.ErrPermission):
		return failed(fmt.Sprintf("%s cannot be read: %v", path, reason(err)), "run doctor as the runner's user; if that is what you did, let that user read the file")
	case err != nil:
		return failed(fmt.Sprintf("%s cannot be read: %v", path, reason(err)), "name the configuration file with --config")
	case !info.Mode().IsRegular():
		return failed(path+" is not a file", "name the configuration file with --config")
	}
	if mode := info.Mode().Perm(); mode&writableByOthers != 0 {
		return warning(fmt.Sprintf("%s has mode %04o, so that others can send jobs to a cluster of theirs", path, mode), "chmod go-w "+path)
	}
	return ok("%s, mode %04o", path, info.Mode().Perm())
}

// reason is an error without the operation and the path, which are said
// already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// judgeConfigValues makes a Result of each thing that is wrong.
func judgeConfigValues(path string, err error) []Result {
	if err == nil {
		return []Result{ok("every key is known, every value makes sense")}
	}
	var all []Result
	for _, one := range flatten(err) {
		text := strings.TrimPrefix(one.Error(), path+": ")
		all = append(all, failed(text, "correct it in "+path))
	}
	return all
}

// flatten gives the errors that errors.Join has joined somewhere inside err.
func flatten(err error) []error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		joined, many := inner.(interface{ Unwrap() []error })
		if !many {
			continue
		}
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, flatten(one)...)
		}
		return all
	}
	return []error{err}
}

// found is where a cluster was found.
type found struct {
	url string
	// fallen is why the kcp side could not be asked: the address is that of the
	// last time.
	fallen error
	err    error
}

const inClusterRemedy = "where the runner can run on the kcp host, let it, with cluster.url; examples/in-cluster-runner.yaml says what else it costs"

func judgeRoute(c settings.Cluster, f found) Result {
	var find *cluster.FindError
	switch {
	case errors.As(f.err, &find):
		return failed(f.err.Error(), stages.FindRemedy(find.Kind))
	case errors.Is(f.err, cluster.ErrNotInCluster):
		return failed("cluster.in_cluster is set, and "+f.err.Error(), "set cluster.url or cluster.discover_cluster on a host outside the cluster")
	case f.err != nil:
		return failed("the cluster cannot be found: "+f.err.Error(), "correct the [cluster] section")
	case c.InCluster:
		return warning(f.url+", as this Pod's own cluster. The runner's Pod keeps a node alive and counts as one of the ceiling", inClusterRemedy)
	case f.fallen != nil:
		return warning(fmt.Sprintf("%s, where the cluster was last: %v", f.url, f.fallen), stages.FindRemedy(cluster.Silent))
	}
	if err := settings.CheckURL("the address", f.url); err != nil {
		return failed(err.Error(), "correct the [cluster] section")
	}
	if c.DiscoverCluster != "" {
		return ok("%s, by Cluster object %q, loopback", f.url, c.DiscoverCluster)
	}
	return ok("%s, loopback", f.url)
}

func judgeHelperImage(image string) Result {
	name, tag, _ := strings.Cut(image, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") { // else it is a port's
		tag = name[colon+1:]
	}
	const remedy = "name the image of the runner's own version, such as gitlab-runner-helper:x86_64-v19.4.0"
	switch {
	case image == "":
		return ok("GitLab's own of the runner's version, since kubernetes.helper_image is not set")
	case tag == "" || strings.HasSuffix(tag, "latest"):
		return warning(image+" has no version of its own: after an upgrade artifacts and caches may be lost without a word", remedy)
	case image == exampleHelper():
		return failed(image+" is the example's", remedy)
	}
	return ok("%s", image)
}

// exampleHelper is the image that examples/config.toml names.
func exampleHelper() string {
	for _, table := range settings.Tables() {
		for _, key := range table.Keys {
			if key.Path() == "kubernetes.helper_image" {
				return key.Example
			}
		}
	}
	return ""
}

// host is the host of an address, "" where there is none.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// withoutUser is an address that can be shown: an operator may have written a
// password into it.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return strings.TrimSuffix(u.String(), "/")
}
