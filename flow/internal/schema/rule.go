package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

// rule is a compiled schema, with what the drafts say differently brought to one form.
type rule struct {
	id       int32
	shared   bool // it can come more than once at a value
	leaf     bool // it has no rules below it
	constant int8 // a boolean schema: accepts or refuses
	resource *resource

	types     uint8 // a bit for each kind, and integers
	typesText string
	fixed     *fixed // const
	enum      *enum
	format    *jsonschema.Format

	ref         *rule
	recursive   *rule  // $recursiveRef
	recursively bool   // the scope has a say in it
	dynamic     *rule  // $dynamicRef
	dynamicName string // the scope has a say in it

	logic  *logic
	object *objectRule
	list   *listRule
	text   *textRule
	number *numberRule
}

const (
	accepts = 1
	refuses = 2
	integer = 7 // a bit in types beside the kinds
)

type logic struct {
	not                 *rule
	allOf, anyOf, oneOf []*rule
	test, then, other   *rule // if, then, else
}

type objectRule struct {
	least, most   *int
	required      names
	perMember     bool // there are properties, patterns or additional ones
	properties    map[string]*rule
	patterns      []patternRule
	additional    *rule
	closed        bool // no additional ones
	allEvaluated  bool
	propertyNames *rule
	dependents    []dependent
	unevaluated   *rule
}

// names are sorted.
type names struct {
	list  []string
	bytes int64
}

type patternRule struct {
	pattern *Pattern
	rule    *rule
}

// dependent is what the presence of a member asks for.
type dependent struct {
	name     string
	required names
	rule     *rule
}

type listRule struct {
	least, most         *int
	unique              bool
	prefix              []*rule
	rest                *rule
	closed              bool // no items after the prefix
	allEvaluated        bool
	contains            *rule
	leastFits, mostFits *int // minContains, maxContains
	fitsEvaluate        bool
	unevaluated         *rule
}

type textRule struct {
	least, most *int
	pattern     *Pattern
}

type numberRule struct {
	least, most, above, below, multiple *limit
}
