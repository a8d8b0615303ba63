package transport

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

var schemes = []string{"nats", "tls", "ws", "wss"}

// CheckURL reads the URLs of servers, several separated by commas, without connecting. A URL
// without a scheme is nats://. The error is a *ConfigError without a password.
func CheckURL(urls string) error {
	for i, text := range strings.Split(urls, ",") {
		if err := checkURL(strings.TrimSpace(text)); err != nil {
			return &ConfigError{Field: "URL", Err: fmt.Errorf("is not like nats://host:4222 (several are separated by commas); number %d: %w", i+1, err)}
		}
	}
	return nil
}

func checkURL(text string) error {
	if !strings.Contains(text, "://") {
		text = "nats://" + text
	}
	u, err := url.Parse(text)
	if refused, is := errors.AsType[*url.Error](err); is {
		return refused.Err // without the URL, which may hold a password
	}
	switch {
	case err != nil:
		return err
	case !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("the scheme %.20q is none of %s", u.Scheme, strings.Join(schemes, ", "))
	case u.Hostname() == "":
		return errors.New("it has no host")
	case strings.Count(u.Host, ":") > 1 && !strings.HasPrefix(u.Host, "["):
		return errors.New("it has two ports")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("the port %.20q is none", port)
		}
	}
	return nil
}
