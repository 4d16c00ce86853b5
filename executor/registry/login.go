package registry

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
)

// Login is a user of a registry. It does not print its password.
type Login struct {
	// Name is how its source names the registry.
	Name               string
	Username, Password string
}

// String hides the password.
func (l Login) String() string { return fmt.Sprintf("the login to %s", l.Name) }

// GoString hides the password as well.
func (l Login) GoString() string { return l.String() }

// Place is what the login is for.
func (l Login) Place() Place { return PlaceOf(l.Name) }

// Logins are logins in the order of their sources: of two for one place the
// first counts.
type Logins []Login

// Add adds the logins of a source behind those of earlier ones, which win.
func (l Logins) Add(more ...Login) Logins {
	for _, login := range more {
		if !slices.ContainsFunc(l, func(have Login) bool { return have.Place() == login.Place() }) {
			l = append(l, login)
		}
	}
	return l
}

// For are the logins that images need.
func (l Logins) For(images []string) Logins {
	var needed Logins
	for _, login := range l {
		if CoversAny(login.Name, images) {
			needed = append(needed, login)
		}
	}
	return needed
}

// CoversAny says whether a login under a name is one for any of the images.
func CoversAny(name string, images []string) bool {
	place := PlaceOf(name)
	return slices.ContainsFunc(images, func(image string) bool { return place.Covers(RepositoryOf(image)) })
}

// JSON is the content of a Secret of the type kubernetes.io/dockerconfigjson.
func (l Logins) JSON() ([]byte, error) {
	type entry struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Auth     string `json:"auth"`
	}
	auths := map[string]entry{}
	for _, login := range l {
		auths[login.Place().key()] = entry{
			Username: login.Username, Password: login.Password,
			Auth: base64.StdEncoding.EncodeToString([]byte(login.Username + ":" + login.Password)),
		}
	}
	text, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		return nil, fmt.Errorf("writing the logins: %w", err)
	}
	return text, nil
}
