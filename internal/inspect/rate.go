package inspect

import "strconv"

// Rate is a rate per second for people, with about two digits; "" for none.
func Rate(r float64) string {
	switch {
	case r <= 0:
		return ""
	case r < 1:
		return strconv.FormatFloat(r, 'f', 2, 64)
	case r < 10:
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return strconv.FormatFloat(r, 'f', 0, 64)
}
