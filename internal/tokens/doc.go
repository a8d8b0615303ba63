// Package tokens looks up the tokens with which programs and people use the HTTP API of a space
// (O11), so that who tries many makes few queries.
package tokens
