package schema

// resource is a schema with an identifier of its own, which $dynamicRef and $recursiveRef look
// through.
type resource struct {
	anchors   map[string]*rule // dynamic anchors that a $dynamicRef asks for
	recursive bool             // has $recursiveAnchor
}

// scope is what the resources that were entered on the way to a value make of $dynamicRef and
// $recursiveRef: the outermost wins. Ways that end in the same scope have the same outcomes.
type scope struct {
	up        *scope
	entered   *resource
	recursive *rule // what $recursiveRef means; nil: nothing yet
	id        int32
	next      map[entry]*scope
}

// entry is what changes a scope.
type entry struct {
	resource  *resource
	recursive *rule
}

// enter is the scope after a rule has been entered.
func (e *evaluation) enter(s *scope, r *rule) *scope {
	if r.resource == nil {
		return s
	}
	step := entry{resource: r.resource}
	if s.recursive == nil && r.resource.recursive {
		step.recursive = r
	}
	if next, ok := s.next[step]; ok {
		return next
	}
	e.pay(scopePrice + int64(len(r.resource.anchors)))
	next := s
	if step.recursive != nil || s.lacks(r.resource) {
		e.scopes++
		next = &scope{up: s, entered: r.resource, recursive: s.recursive, id: e.scopes}
		if step.recursive != nil {
			next.recursive = r
		}
	}
	if s.next == nil {
		s.next = map[entry]*scope{}
	}
	s.next[step] = next
	return next
}

func (s *scope) lacks(r *resource) bool {
	for name := range r.anchors {
		if s.find(name) == nil {
			return true
		}
	}
	return false
}

// find is the outermost rule with a dynamic anchor.
func (s *scope) find(name string) (found *rule) {
	for ; s.up != nil; s = s.up {
		if r := s.entered.anchors[name]; r != nil {
			found = r
		}
	}
	return found
}
