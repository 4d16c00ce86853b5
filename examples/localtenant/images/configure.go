package images

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
)

// certificates is where Debian's programs look for certificate authorities.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// configure does to unpacked Debian packages what their scripts would have
// done, as far as a job can tell. Steps whose package is not there are left
// out.
func configure(t *tree) error {
	copies := []struct{ from, to string }{
		{"usr/share/base-passwd/passwd.master", "etc/passwd"}, // base-passwd.postinst
		{"usr/share/base-passwd/group.master", "etc/group"},
		{"usr/share/base-files/nsswitch.conf", "etc/nsswitch.conf"}, // base-files.postinst
		{"usr/share/base-files/profile", "etc/profile"},
		{"usr/share/base-files/dot.profile", "root/.profile"},
		{"usr/share/base-files/dot.bashrc", "root/.bashrc"},
	}
	for _, c := range copies {
		if err := copyFile(t, c.from, c.to); err != nil {
			return err
		}
	}
	links := []struct{ path, target, needs string }{
		{"usr/bin/awk", "mawk", "usr/bin/mawk"},                             // mawk.postinst, update-alternatives
		{"usr/bin/pager", "more", "usr/bin/more"},                           // util-linux.postinst
		{"usr/bin/which", "which.debianutils", "usr/bin/which.debianutils"}, // debianutils.postinst
		{"bin/sh", "dash", "bin/dash"},
	}
	for _, l := range links {
		if t.has(l.path) || !t.has(l.needs) {
			continue
		}
		if err := t.add(Entry{Path: l.path, Mode: fs.ModeSymlink | 0o777, Target: l.target}); err != nil {
			return err
		}
	}
	if err := addCommands(t); err != nil {
		return err
	}
	if err := addAccounts(t); err != nil {
		return err
	}
	return addCertificates(t)
}

func copyFile(t *tree, from, to string) error {
	body, found := t.read(from)
	if !found {
		return nil
	}
	return t.add(Entry{Path: to, Mode: 0o644, Body: string(body)})
}

// addCommands makes PostgreSQL's programs commands. Debian's own commands of
// these names choose one of several versions, and are written in Perl.
func addCommands(t *tree) error {
	for _, program := range t.under("usr/lib/postgresql", "") {
		folder, name := path.Split(program)
		if path.Base(folder) != "bin" {
			continue
		}
		link := Entry{Path: "usr/local/bin/" + name, Mode: fs.ModeSymlink | 0o777, Target: "/" + program}
		if err := t.add(link); err != nil {
			return err
		}
	}
	return nil
}

// addAccounts adds the ordinary user, and those that services run as.
func addAccounts(t *tree) error {
	for _, a := range []struct {
		name  string
		id    int
		home  string
		needs string
	}{
		{name: "job", id: jobUser, home: "/home/job"},
		{name: "redis", id: redisUser, home: "/var/lib/redis", needs: "usr/bin/redis-server"},              // redis-server.postinst
		{name: "postgres", id: postgresUser, home: "/var/lib/postgresql", needs: "usr/local/bin/postgres"}, // postgresql-common.postinst
	} {
		if a.needs != "" && !t.has(a.needs) {
			continue
		}
		for name, line := range map[string]string{
			"etc/passwd": fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", a.name, a.id, a.id, a.home),
			"etc/group":  fmt.Sprintf("%s:x:%d:\n", a.name, a.id),
		} {
			body, found := t.read(name)
			if !found {
				continue
			}
			if err := t.add(Entry{Path: name, Mode: 0o644, Body: string(body) + line}); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCertificates puts Debian's certificate authorities into the one file that
// programs read (update-ca-certificates).
func addCertificates(t *tree) error {
	var bundle bytes.Buffer
	for _, name := range t.under("usr/share/ca-certificates", ".crt") {
		body, _ := t.read(name)
		bundle.Write(bytes.TrimRight(body, "\n"))
		bundle.WriteByte('\n')
	}
	if bundle.Len() == 0 {
		return nil
	}
	return t.add(Entry{Path: certificates, Mode: 0o644, Body: bundle.String()})
}
