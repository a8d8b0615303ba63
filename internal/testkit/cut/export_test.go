package cut

// Lost is how many of the connections that live have lost something.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		if l.lost {
			n++
		}
	}
	return n
}
