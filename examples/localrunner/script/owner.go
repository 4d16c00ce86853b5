package script

import "path"

// ownerFile belongs to the user of the build container, where somebody has made
// it: the kubernetes executor with FF_DISABLE_UMASK_FOR_KUBERNETES_EXECUTOR, or
// a driver.
const ownerFile = ".gitlab-build-uid-gid"

func (w *writer) owner() string { return path.Join(w.b.BuildsDir(), ownerFile) }

// giveAway gives what a stage has made in these folders to the owner of that
// file (shells/abstract.go, changeFilesOwnership).
func (w *writer) giveAway(folders ...string) {
	w.ifThen("[ -e "+w.quote(w.owner())+" ]", func() {
		for _, folder := range folders {
			w.ifThen("[ -d "+w.quote(folder)+" ]", func() {
				w.linef(`chown -R "$(stat -c '%%u:%%g' %s)" %s`, w.quote(w.owner()), w.quote(folder))
			})
		}
	})
}
