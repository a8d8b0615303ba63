package access

import (
	"net/http"
	"net/url"
)

// crossSite says that a page of another origin made a browser send the request, and it is no
// navigation to it. Another port of this machine is another origin, too. Programs send none of
// these headers. A browser that sends no Sec-Fetch-Site (it asks in clear, or is an old one) names
// the Origin with all that it lets a script read.
func crossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: a person typed the address
		return false
	case "":
		origin := r.Header.Get("Origin")
		if origin == "" {
			return false
		}
		o, err := url.Parse(origin)
		return err != nil || o.Host != r.Host
	}
	return !navigates(r)
}

// navigates says that a person follows a link, so that no page of another site sees the answer or
// has it in a frame.
func navigates(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && r.Header.Get("Sec-Purpose") == "" // which a page sets that has it fetched beforehand
}
