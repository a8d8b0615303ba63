package main

import (
	"net/url"
	"slices"
	"sync"
)

// ownServers are the addresses at which this process and the servers of worker dev listen. The
// built-in http never calls them (S14): they take whoever is on this machine for its operator.
type ownServers struct {
	mu        sync.Mutex
	addresses []string
}

// add adds the host and port of URLs; an empty one is none.
func (o *ownServers) add(urls ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Port() != "" {
			o.addresses = append(o.addresses, u.Host)
		}
	}
}

// list serves as workers.Builtins.HTTPOwn.
func (o *ownServers) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.addresses)
}
