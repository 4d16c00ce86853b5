package images

import (
	_ "embed"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

//go:embed scripts/redis.sh
var redisScript string

//go:embed scripts/postgres.sh
var postgresScript string

// serviceImages are images that run beside a job. redis and postgres have the
// entrypoints, users and variables of the images everybody knows.
func serviceImages() []Recipe {
	return []Recipe{
		{
			Name: "localtenant/redis", Tag: Tag,
			Layers: []Layer{
				service("redis-server", "redis-tools"),
				Files{Name: "folder of redis", Entries: []Entry{{Path: "data", Mode: fs.ModeDir | 0o755, UID: redisUser, GID: redisUser}}},
				script("redis.sh", redisScript),
			},
			Config: v1.Config{
				Entrypoint: []string{"/usr/local/bin/redis.sh"}, Cmd: []string{"redis-server"}, WorkingDir: "/data",
				Env: debianEnv(), ExposedPorts: port("6379/tcp"), Volumes: volume("/data"),
			},
		},
		{
			Name: "localtenant/postgres", Tag: Tag,
			Layers: []Layer{
				service("postgresql"),
				Files{Name: "folders of postgres", Entries: []Entry{
					{Path: "var/lib/postgresql", Mode: fs.ModeDir | 0o755, UID: postgresUser, GID: postgresUser},
					{Path: "var/lib/postgresql/data", Mode: fs.ModeDir | 0o700, UID: postgresUser, GID: postgresUser},
					{Path: "run/postgresql", Mode: fs.ModeDir | fs.ModeSticky | 0o777, UID: postgresUser, GID: postgresUser},
				}},
				script("postgres.sh", postgresScript),
			},
			Config: v1.Config{
				Entrypoint: []string{"/usr/local/bin/postgres.sh"}, Cmd: []string{"postgres"},
				// As the well-known image: what has begun is finished, and
				// clients are not waited for.
				StopSignal: "SIGINT",
				Env:        append(debianEnv(), "PGDATA=/var/lib/postgresql/data"), ExposedPorts: port("5432/tcp"),
				Volumes: volume("/var/lib/postgresql/data"),
			},
		},
		{
			Name: "localtenant/service-probe", Tag: Tag,
			Layers: []Layer{GoProgram{Package: "./images/serviceprobe", Path: "service-probe"}},
			Config: v1.Config{Entrypoint: []string{"/service-probe"}, ExposedPorts: port("8080/tcp")},
		},
	}
}

// service is a Debian with just what a service and the shell script before it
// need.
func service(packages ...string) DebianPackages {
	return DebianPackages{
		Install: append([]string{
			"base-files", "base-passwd", "coreutils", "dash", "libc-bin", "sed", "usr-is-merged", "util-linux",
		}, packages...),
		// What is only for their installation or management, and the
		// compiler that PostgreSQL does without.
		Without: []string{
			"perl", "perl-*", "libperl5*", "lib*-perl", "libgdbm*", "adduser", "passwd", "dpkg", "debconf", "tar",
			"init-system-helpers", "lsb-base", "sysvinit-utils", "ucf", "usrmerge", "ssl-cert", "openssl", "locales",
			"sensible-utils", "postgresql-common", "postgresql-client-common", "libllvm*", "libz3-*",
			"libsemanage*", "libsepol*", "libdb5*", "util-linux-extra", "libpam-modules*",
		},
	}
}

func port(name string) map[string]struct{} { return map[string]struct{}{name: {}} }

func volume(path string) map[string]struct{} { return map[string]struct{}{path: {}} }
