package dev

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// fallbackRoot has clusters whose own directory the database's user cannot reach, for example
// below a root-only home.
const fallbackRoot = "/var/lib/quipu-dev"

// locationFile tells people where such a cluster is.
const locationFile = "LOCATION"

// owner is the user of the Postgres processes; nil is this process's own user.
type owner struct {
	name     string
	uid, gid uint32
}

// clusterOwner returns the user for a process that runs as root, since Postgres refuses root:
// postgres, or else nobody.
func clusterOwner() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s has uid %q: %w", name, u.Uid, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user %s has gid %q: %w", name, u.Gid, err)
		}
		return &owner{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("postgres refuses to run as root, and there is neither a user postgres nor nobody to run it as: add one, or run as another user")
}

func (o *owner) credential() *syscall.Credential {
	if o == nil {
		return nil
	}
	return &syscall.Credential{Uid: o.uid, Gid: o.gid}
}

// take gives path to the owner.
func (o *owner) take(path string) error {
	if o == nil {
		return nil
	}
	return os.Chown(path, int(o.uid), int(o.gid))
}

// home returns the directory of the cluster: dir, or, if the owner cannot reach dir, a place
// below fallbackRoot. That place depends on dir alone, so that it is found again.
func (o *owner) home(dir string) (string, error) {
	if o == nil {
		return dir, nil
	}
	blocked := o.blockedAt(dir)
	if blocked == "" {
		return dir, nil
	}
	sum := sha256.Sum256([]byte(dir))
	place := filepath.Join(fallbackRoot, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(place, 0o755); err != nil {
		return "", fmt.Errorf("user %s cannot pass %s, and no other place for the cluster can be made: %w: take a directory that others can pass, or chmod o+x %s", o.name, blocked, err, blocked)
	}
	if blocked := o.blockedAt(place); blocked != "" {
		return "", fmt.Errorf("user %s can pass neither to %s nor %s: chmod o+x %s", o.name, dir, place, blocked)
	}
	note := place + "\n" // says where the cluster is
	if err := os.WriteFile(filepath.Join(dir, locationFile), []byte(note), 0o644); err != nil {
		return "", fmt.Errorf("note the cluster's place: %w", err)
	}
	return place, nil
}

// blockedAt returns the outermost directory on the path to dir (dir included) that the owner
// cannot enter; empty if there is none.
func (o *owner) blockedAt(dir string) string {
	blocked := ""
	for at := dir; ; at = filepath.Dir(at) {
		if !o.passes(at) {
			blocked = at
		}
		if at == filepath.Dir(at) {
			return blocked
		}
	}
}

func (o *owner) passes(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	switch {
	case stat.Uid == o.uid:
		return info.Mode()&0o100 != 0
	case stat.Gid == o.gid:
		return info.Mode()&0o010 != 0
	default:
		return info.Mode()&0o001 != 0
	}
}
