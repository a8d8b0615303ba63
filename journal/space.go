package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quipu-journal/quipu/internal/canonical"
)

// SpaceKind is the kind of an entry of a space's own chain (S7).
type SpaceKind string

// The kinds of entries of a space's chain, with their facts, all of them required.
const (
	// SpaceAccepted: a weakness of the servers was accepted, by the name of its check, and with the
	// value that the check saw.
	SpaceAccepted SpaceKind = "accepted"
	// SpaceGranted: a login of the database got a role of the space; a worker's, for these topics,
	// with spaces between.
	SpaceGranted SpaceKind = "granted"
	// SpaceRevoked: it lost the role, or these topics of a worker; no topics: all of them, and the
	// role.
	SpaceRevoked SpaceKind = "revoked"
	// SpaceTokenMade: somebody has a token of the HTTP API, with a role, for a time, or "until
	// revoked".
	SpaceTokenMade SpaceKind = "token-made"
	// SpaceTokenRevoked: the token of that name does not hold any more.
	SpaceTokenRevoked SpaceKind = "token-revoked"
	// SpaceKeyAdded: messages are signed by a new key, whose id is key; others says how long those
	// before it hold.
	SpaceKeyAdded SpaceKind = "key-added"
	// SpaceSigning: the space signs its messages, messages is "signed" or "unsigned".
	SpaceSigning SpaceKind = "signing"
	// SpaceRecovered: another database was accepted. why is what was seen, "" for nothing; before and
	// epoch are the epochs; lost says whether commits may be missing, "none" or "writes", and starts
	// for how long jobs that begin are asked about.
	SpaceRecovered SpaceKind = "recovered"
	// SpacePromotion: what processes do when a standby was promoted, "stop" or "continue".
	SpacePromotion SpaceKind = "on-promotion"
	// SpaceExpire: how long closed jobs are kept whose flow does not say it; "never" for good.
	SpaceExpire SpaceKind = "expire"
	// SpaceDeployed: a version of a flow is there that was not; active says whether new jobs take it,
	// "yes" or "no".
	SpaceDeployed SpaceKind = "deployed"
	// SpaceActivated: new jobs of the flow take the version, and no more the one before.
	SpaceActivated SpaceKind = "activated"
	// SpacePrivateKeys: the space keeps digests of keys, for good.
	SpacePrivateKeys SpaceKind = "private-keys"
)

// spaceFacts has the facts of each kind.
var spaceFacts = map[SpaceKind][]string{
	SpaceAccepted:     {"check", "value"},
	SpaceGranted:      {"role", "login", "topics"},
	SpaceRevoked:      {"role", "login", "topics"},
	SpaceTokenMade:    {"name", "role", "holds"},
	SpaceTokenRevoked: {"name"},
	SpaceKeyAdded:     {"key", "others"},
	SpaceSigning:      {"messages"},
	SpaceRecovered:    {"why", "before", "epoch", "lost", "starts"},
	SpacePromotion:    {"processes"},
	SpaceExpire:       {"after"},
	SpaceDeployed:     {"flow", "version", "digest", "active"},
	SpaceActivated:    {"flow", "version", "before"},
	SpacePrivateKeys:  {},
}

const (
	spaceLabel = "quipu-space-chain-v1\x00"
	// spaceVersion is that of the format of the entries.
	spaceVersion = 1
	// MaxSpaceText bounds each text of an entry of the space's chain, in bytes.
	MaxSpaceText = 4 << 10
)

// SpaceEntry is one entry of the chain of a space: something that an operator decided about the
// space itself.
type SpaceEntry struct {
	Seq   int64 // from 1; not in the body
	Kind  SpaceKind
	At    int64  // microseconds since 1970, by the database's clock (J5)
	Who   string // who asked, as the process says; or the name that the process gives itself
	Login string // the session_user of the database
	Build string
	Facts map[string]string // those of its kind, and no others
}

// spaceBody is the spelling of an entry.
type spaceBody struct {
	At    int64             `json:"at"`
	Build string            `json:"build"`
	Facts map[string]string `json:"facts"`
	Kind  SpaceKind         `json:"kind"`
	Login string            `json:"login"`
	V     int               `json:"v"`
	Who   string            `json:"who"`
}

// SpaceGenesis returns h₀ of the chain of a space: SHA-256 over a label and the length-prefixed
// name and id of the space. Next gives the other hashes, as for jobs (J9).
func SpaceGenesis(name string, id GUID) Digest {
	b := append([]byte(nil), spaceLabel...)
	b = appendField(b, []byte(name))
	b = appendField(b, id[:])
	return sha256.Sum256(b)
}

// EncodeSpace returns the body of an entry, in canonical JSON. It refuses an unknown kind, facts
// that its kind does not have or that are missing, and texts over MaxSpaceText.
func EncodeSpace(e *SpaceEntry) ([]byte, error) {
	facts, known := spaceFacts[e.Kind]
	if !known {
		return nil, fmt.Errorf("%w %.40q of the space's chain", ErrUnknownKind, e.Kind)
	}
	if have := slices.Sorted(maps.Keys(e.Facts)); !slices.Equal(have, slices.Sorted(slices.Values(facts))) {
		return nil, fmt.Errorf("%w: an entry %s has the facts %q, not %.200q", ErrUnknownField, e.Kind, facts, have)
	}
	for _, text := range append(slices.Collect(maps.Values(e.Facts)), e.Who, e.Login, e.Build) {
		if len(text) > MaxSpaceText {
			return nil, fmt.Errorf("%w: a text of %d bytes, the limit is %d", ErrNotCanonical, len(text), MaxSpaceText)
		}
	}
	return canonical.Marshal(&spaceBody{e.At, e.Build, e.Facts, e.Kind, e.Login, spaceVersion, e.Who})
}

// DecodeSpace reads what EncodeSpace wrote, and no other spelling: ErrUnknownVersion,
// ErrUnknownKind, ErrUnknownField, ErrNotCanonical.
func DecodeSpace(body []byte) (*SpaceEntry, error) {
	if len(body) > MaxEntryBytes {
		return nil, fmt.Errorf("%w: body has %d bytes, the limit is %d", ErrNotCanonical, len(body), MaxEntryBytes)
	}
	var b spaceBody
	err := json.Unmarshal(body, &b)
	switch {
	case err == nil && b.V != spaceVersion:
		return nil, fmt.Errorf("%w %d: this build reads version %d", ErrUnknownVersion, b.V, spaceVersion)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	e := &SpaceEntry{Kind: b.Kind, At: b.At, Who: b.Who, Login: b.Login, Build: b.Build, Facts: b.Facts}
	again, err := EncodeSpace(e)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, body) {
		return nil, errors.Join(ErrNotCanonical, errors.New("encoding it again gives other bytes"))
	}
	return e, nil
}
