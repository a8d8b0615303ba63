package replay

import (
	"crypto/sha256"
	"iter"
	"slices"

	"github.com/quipu-journal/quipu/journal"
)

// MaxPayloads bounds the bytes of outputs that are kept to evaluate expressions (V17). Outputs
// beyond it are checked against their digests (V18), and expressions that see them are not
// proved.
const MaxPayloads = 64 << 20

// Attachments has the bytes that entries name and do not hold (S10), as they are stored.
type Attachments struct {
	// Whole says that it has all that is stored; what an entry names and is not here is then a
	// violation. An export may have been made without some, which is then not proved.
	Whole bool
	// Definition is that of the job's flow version; nil: it is not here.
	Definition []byte
	// Payloads are outputs, by the digest under which they are stored.
	Payloads map[journal.Digest]Payload
	// Flows compiles definitions once for many jobs; nil: for this one.
	Flows *Flows
}

// Payload is an output that is stored beside its entry.
type Payload struct {
	Sum  journal.Digest // the SHA-256 of its bytes
	Body []byte         // nil beyond MaxPayloads
}

// ReadAttachments reads what is stored beside the entries of a job.
func ReadAttachments(all iter.Seq2[journal.Attachment, error]) (*Attachments, error) {
	b := &Attachments{Payloads: map[journal.Digest]Payload{}}
	kept := 0
	for x, err := range all {
		switch {
		case err != nil:
			return nil, err
		case x.Definition:
			b.Definition = slices.Clone(x.Body)
			continue
		}
		p := Payload{Sum: sha256.Sum256(x.Body)}
		if kept += len(x.Body); kept <= MaxPayloads {
			p.Body = slices.Clone(x.Body)
		}
		b.Payloads[x.Digest] = p
	}
	return b, nil
}

// names records an output that an entry names by its digest.
func (a *auditor) names(e *journal.Entry) {
	if r := e.Response; r != nil && !r.Ref.IsZero() {
		if _, known := a.refs[r.Ref]; !known {
			a.refs[r.Ref] = e.Seq
		}
	}
}

// payloadLaw checks outputs that are stored beside their entries (V18): each fits its digest, and
// each that an entry names is there.
func (a *auditor) payloadLaw() {
	missing := 0
	for _, d := range sortedDigests(a.refs) {
		if _, there := a.attachments.Payloads[d]; there {
			continue
		}
		if missing++; a.attachments.Whole {
			a.report(V18, journal.MainChain, a.refs[d], "the output %s, which the response names, is not stored", d)
		}
	}
	for _, d := range sortedDigests(a.attachments.Payloads) {
		if p := a.attachments.Payloads[d]; p.Sum != d {
			a.report(V18, journal.MainChain, a.refs[d], "the output stored under the digest %s has the SHA-256 %s", d, p.Sum)
		}
	}
	if missing > 0 {
		a.note(V18, itoa(int64(missing))+" outputs that entries name are not in this input")
	}
}

// definitionLaw checks the definition of the flow against the digest that the first entry says
// (V19), and the header of the job's row with it.
func (a *auditor) definitionLaw() {
	want := a.job.Flow.Digest
	if s := a.stored; s != nil && s.Flow != a.job.Flow {
		a.report(V19, journal.MainChain, 0, "the job's row carries flow %s version %s, digest %s; the first entry says %s version %s, digest %s",
			s.Flow.Name, s.Flow.Version, s.Flow.Digest, a.job.Flow.Name, a.job.Flow.Version, want)
	}
	switch d := a.attachments.Definition; {
	case d == nil && a.attachments.Whole && a.job.ClosedAt == 0:
		a.report(V19, journal.MainChain, 0, "the definition of flow %s version %s is not stored, and the job is open", a.job.Flow.Name, a.job.Flow.Version)
	case d == nil:
		a.note(V19, "the flow's definition is not in this input")
	default:
		if sum := journal.Digest(sha256.Sum256(d)); sum != want {
			a.report(V19, journal.MainChain, 0, "the definition of flow %s version %s has the SHA-256 %s, the first entry says %s",
				a.job.Flow.Name, a.job.Flow.Version, sum, want)
		} else if f := a.given.flow; f != nil && (f.Name() != a.job.Flow.Name || f.Version() != a.job.Flow.Version) {
			a.report(V19, journal.MainChain, 0, "the definition is that of flow %s version %s, the first entry says %s version %s",
				f.Name(), f.Version(), a.job.Flow.Name, a.job.Flow.Version)
		}
	}
}
