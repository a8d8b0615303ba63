package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// O11: a token is printed once, listed without its secret, and revoked.
func TestTokens(t *testing.T) {
	s := newSpace(t)
	require.Contains(t, s.do("", "token", "ls").Err, "no tokens")
	token := strings.TrimSpace(s.ok("", "token", "create", "shop", "--role", "client"))
	require.True(t, strings.HasPrefix(token, "quipu_"))
	require.Contains(t, s.fails(codeRefused, "", "token", "create", "shop").Err, "revoke one")
	require.Contains(t, s.fails(codeRefused, "", "token", "create", "x", "--role", "root").Err, "viewer client operator")
	s.ok("", "token", "create", "ada", "--role", "operator", "--for", "720h")
	listed := s.ok("", "token", "ls")
	require.Contains(t, listed, "shop  client")
	require.NotContains(t, listed, token)
	require.Contains(t, listed, "  it is revoked\n", "HOLDS UNTIL")
	all := objects(t, s.ok("", "token", "ls", "-o", "json"))
	require.Len(t, all, 2)
	require.NotContains(t, all[0], "ends")
	require.Contains(t, all[1], "ends")
	require.Equal(t, "token shop is revoked\n", s.ok("", "token", "revoke", "shop"))
	require.Contains(t, s.fails(codeNotFound, "", "token", "revoke", "shop").Err, "no token")
}
