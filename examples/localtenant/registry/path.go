package registry

import "strings"

// request is what a request asks for.
type request struct {
	// repository is a name like localtenant/debian, or empty for a request
	// that concerns none, like that for /v2/.
	repository string
	// kind is manifests, blobs, tags or referrers.
	kind string
}

// parsePath reads a path of the distribution API: /v2/NAME/KIND/…, where NAME
// has slashes of its own.
func parsePath(path string) request {
	rest, found := strings.CutPrefix(path, "/v2/")
	if !found {
		return request{}
	}
	parts := strings.Split(rest, "/")
	// From the end: a part of the name may be called like a kind. An upload
	// has two parts after its kind (blobs/uploads/ID).
	for i := len(parts) - 1; i > 0; i-- {
		switch parts[i] {
		case "manifests", "blobs", "tags", "referrers":
			return request{repository: strings.Join(parts[:i], "/"), kind: parts[i]}
		}
	}
	return request{}
}
