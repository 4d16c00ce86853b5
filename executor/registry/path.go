// Package registry is about logins to image registries: where they are written,
// which of them an image needs, and how Kubernetes takes them.
package registry

import (
	"path"
	"strings"
)

// hub is Docker Hub, the registry of images that name none.
const hub = "docker.io"

// hubKey is the name under which logins to Docker Hub are kept.
const hubKey = "https://index.docker.io/v1/"

// Place is a registry, or a part of one: a host in lower case, its port, and a
// path that may be empty. Docker Hub is docker.io.
type Place string

// PlaceOf reads the name of a login. Names with https:// in front are the old
// kind, of which only the host counts (helpers/docker/auth/auth.go in GitLab
// Runner, convertToRegistryPath).
func PlaceOf(name string) Place {
	lower := strings.ToLower(name)
	for _, scheme := range []string{"https://", "http://"} {
		if strings.HasPrefix(lower, scheme) {
			host, _, _ := strings.Cut(name[len(scheme):], "/")
			return place(host)
		}
	}
	name = strings.TrimSuffix(name, "/")
	if slash := strings.LastIndex(name, "/"); slash >= 0 {
		if colon := strings.LastIndex(name, ":"); colon > slash {
			name = name[:colon]
		}
	}
	return place(name)
}

// TagOf is the tag of an image, "" where its name has none.
func TagOf(image string) string {
	_, tag := splitTag(image)
	return tag
}

// splitTag takes an image's name apart, without its digest.
func splitTag(image string) (name, tag string) {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon], image[colon+1:]
	}
	return image, ""
}

// RepositoryOf is the place of an image: its name without tag and digest.
func RepositoryOf(image string) Place {
	image, _ = splitTag(image)
	host, _, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && !strings.EqualFold(host, "localhost") {
		return Place(hub + "/" + image)
	}
	return place(image)
}

// place lowers the host, which has no case, and gives Docker Hub its one name.
func place(name string) Place {
	host, rest, found := strings.Cut(name, "/")
	host = strings.ToLower(host)
	if host == "index."+hub {
		host = hub
	}
	if !found {
		return Place(host)
	}
	return Place(host + "/" + rest)
}

// Covers says whether a login for p is one for the repository. The parts of
// p's host may be patterns, as in *.example.com, which the kubelet allows
// (pkg/credentialprovider/keyring.go in Kubernetes).
func (p Place) Covers(repository Place) bool {
	host, rest, _ := strings.Cut(string(p), "/")
	theirs, their, _ := strings.Cut(string(repository), "/")
	if !hostCovers(host, theirs) {
		return false
	}
	return rest == "" || rest == their || strings.HasPrefix(their, rest+"/")
}

func hostCovers(pattern, host string) bool {
	patterns, parts := strings.Split(pattern, "."), strings.Split(host, ".")
	if len(patterns) != len(parts) {
		return false
	}
	for i := range patterns {
		if ok, err := path.Match(patterns[i], parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// key is the name under which the kubelet looks for a login of the place.
func (p Place) key() string {
	if p == hub {
		return hubKey
	}
	return string(p)
}
