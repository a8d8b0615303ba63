package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/quipu-journal/quipu/internal/store"
	"github.com/quipu-journal/quipu/journal"
)

// filterWords are the names before the colon of a word of the search box.
var filterWords = []string{"state", "flow", "version", "tag", "waits", "since", "until", "parent"}

// valuesOf reads the text of the search box into the parameters of an address: words such as
// state:failed, and how a key begins. What has a space or a colon stands in quotes.
func valuesOf(text string) (url.Values, error) {
	q := url.Values{}
	words, err := split(text)
	if err != nil {
		return nil, err
	}
	for _, w := range words {
		name, value := w.name, w.value
		switch {
		case name != "" && !slices.Contains(filterWords, name):
			return nil, bad("no filter is called %.40q: use %s:, or put a key that begins so in quotes", name, strings.Join(filterWords, ":, "))
		case name != "" && value == "":
			return nil, bad("%s: has no value: write for example %s", name, example[name])
		case name == "state":
			for state := range strings.SplitSeq(value, ",") {
				q.Add("state", state)
			}
			continue
		case name == "tag" && q.Get("tag") != "":
			value, name = q.Get("tag")+","+value, "tag"
			q.Del("tag")
		case name == "until":
			name = "to"
		case name == "since" && span(value) >= 0:
			name = "last"
		case name == "since":
			name = "from"
		}
		name = cmp.Or(name, "prefix")
		if q.Has(name) && name == "prefix" {
			return nil, bad("a key begins in one way: %.40q or %.40q? Put what has a space in quotes", q.Get(name), value)
		} else if q.Has(name) {
			return nil, bad("%s: is given twice; only state: and tag: may be", w.name)
		}
		q.Set(name, value)
	}
	return q, checked(q)
}

// example is a word of each name.
var example = map[string]string{
	"state": "state:failed", "flow": "flow:order", "version": "version:2", "tag": "tag:eu",
	"waits": "waits:topic:payments",
	"since": "since:1h", "until": "until:2026-01-31T18:00", "parent": "parent:order-42",
}

// checked refuses what no filter of jobs takes, before the database is asked.
func checked(q url.Values) error {
	for _, name := range q["state"] {
		if !slices.Contains(journal.JobStates, journal.JobState(name)) {
			return badState(name)
		}
	}
	if q.Get("from") != "" {
		if _, err := moment("since", q.Get("from")); err != nil {
			return badSince(q.Get("from"))
		}
	}
	waits := store.JobFilter{Waits: q.Get("waits")}
	if _, _, err := waits.Waiting(); q.Has("waits") && err != nil {
		return bad("waits:%.40s: use topic, signal, timer, child or person; topic:NAME and signal:NAME", q.Get("waits"))
	}
	return nil
}

func badState(name string) error { return bad("state:%.40s: use one of %v", name, journal.JobStates) }

func badSince(text string) error {
	return bad("since:%.40s: use how long ago, such as 15m, 1h, 7d or all, or a moment in UTC, such as 2026-01-31T18:00", text)
}

// typed is a word of the search box. name is "" for how a key begins.
type typed struct{ name, value string }

// split splits a text at its spaces, but not within quotes.
func split(text string) (words []typed, err error) {
	ends := func(r rune) bool { return r == ':' || r == '"' || unicode.IsSpace(r) }
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var w typed
		if at := strings.IndexFunc(text, ends); at > 0 && text[at] == ':' {
			w.name, text = text[:at], text[at+1:]
		}
		if strings.HasPrefix(text, `"`) {
			end := strings.Index(text[1:], `"`)
			if end < 0 {
				return nil, bad("a quote is not closed: %.40s", text)
			}
			w.value, text = text[1:end+1], text[end+2:]
		} else {
			end := strings.IndexFunc(text, unicode.IsSpace)
			if end < 0 {
				end = len(text)
			}
			w.value, text = text[:end], text[end:]
		}
		words = append(words, w)
	}
	return words, nil
}

// String is the word as the box has it.
func (w typed) String() string {
	text := w.value
	if strings.ContainsFunc(text, unicode.IsSpace) || w.name == "" && strings.Contains(text, ":") {
		text = `"` + text + `"`
	}
	if w.name == "" {
		return text
	}
	return w.name + ":" + text
}

// chip is a word of the filter that is set, with the address of the list without it.
type chip struct{ Text, Without string }

// chips are the words of the filter.
func (f *filter) chips() (all []chip) {
	add := func(name, param, value string) {
		if value == "" {
			return
		}
		q := f.query()
		if f.Assumed {
			q.Del("last")
		}
		q[param] = slices.DeleteFunc(q[param], func(x string) bool { return x == value })
		if param == "tag" {
			others := slices.DeleteFunc(slices.Clone(f.jobs.Tags), func(x string) bool { return x == value })
			q.Set("tag", strings.Join(others, ","))
		}
		if q.Get(param) == "" {
			q.Del(param)
		}
		if param == "last" && f.Assumed {
			q.Set("last", "all")
		}
		all = append(all, chip{typed{name, value}.String(), strings.TrimSuffix("/jobs?"+q.Encode(), "?")})
	}
	for _, state := range journal.JobStates {
		if f.States[state] {
			add("state", "state", string(state))
		}
	}
	add("flow", "flow", f.Flow)
	add("version", "version", f.Version)
	for _, tag := range f.jobs.Tags {
		add("tag", "tag", tag)
	}
	add("waits", "waits", f.waits())
	add("parent", "parent", f.Parent)
	add("since", "last", f.Last)
	add("since", "from", f.From)
	add("until", "to", f.To)
	add("", "prefix", f.Prefix)
	return all
}

// text is the filter as the search box has it, without what is only assumed.
func (f *filter) text() string {
	var words []string
	for _, c := range f.chips() {
		if !f.Assumed || c.Text != "since:"+usual {
			words = append(words, c.Text)
		}
	}
	return strings.Join(words, " ")
}
