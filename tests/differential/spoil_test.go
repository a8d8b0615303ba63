package differential

import (
	"github.com/quipu-journal/quipu/collation"
	"github.com/quipu-journal/quipu/journal"
)

// spoils falsify plans: what they make is refused, and for the same reason.
var spoils = map[string]func(p *collation.Plan, st *collation.State){
	"": func(*collation.Plan, *collation.State) {},
	"ledger before": func(p *collation.Plan, _ *collation.State) {
		for i := range p.Ledgers {
			p.Ledgers[i].Before++
			p.Ledgers[i].After++
		}
	},
	"ledger new": func(p *collation.Plan, _ *collation.State) {
		for i := range p.Ledgers {
			p.Ledgers[i].New = !p.Ledgers[i].New
		}
	},
	"ledger width": func(p *collation.Plan, _ *collation.State) {
		for i := range p.Ledgers {
			p.Ledgers[i].After += 1e14
		}
	},
	"ledger back": func(p *collation.Plan, _ *collation.State) {
		for i := range p.Ledgers {
			p.Ledgers[i].After = max(p.Ledgers[i].Before-1, 0)
		}
	},
	"receipt new": func(p *collation.Plan, _ *collation.State) {
		if p.Receipt != nil {
			p.Receipt.New = !p.Receipt.New
		}
	},
	"receipt before": func(p *collation.Plan, _ *collation.State) {
		if p.Receipt != nil {
			p.Receipt.Before++
		}
	},
	"receipt digits": func(p *collation.Plan, _ *collation.State) {
		if p.Receipt != nil {
			p.Receipt.After += 1e9
		}
	},
	"semaphore before": func(p *collation.Plan, _ *collation.State) { p.Semaphore.Before++; p.Semaphore.After++ },
	"semaphore below":  func(p *collation.Plan, _ *collation.State) { p.Semaphore.After = -1 },
	"seq":              func(p *collation.Plan, _ *collation.State) { seq(p, 1) },
	"seq again":        func(p *collation.Plan, _ *collation.State) { seq(p, -1) },
	"delete nothing":   func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, journal.GUID{8: 1}) },
	"delete twice":     func(p *collation.Plan, _ *collation.State) { p.Delete = append(p.Delete, p.Delete...) },
	"delete and update": func(p *collation.Plan, st *collation.State) {
		for _, g := range p.Delete {
			if r := st.Rows[g]; r != nil {
				p.Update = append(p.Update, *r)
			}
		}
	},
	"insert what is there": func(p *collation.Plan, st *collation.State) {
		for _, r := range st.Rows {
			if r != nil && len(p.Insert) == 0 {
				p.Insert = append(p.Insert, *r)
			}
		}
	},
	"insert twice": func(p *collation.Plan, _ *collation.State) { p.Insert = append(p.Insert, p.Insert...) },
	"update nothing": func(p *collation.Plan, st *collation.State) {
		p.Update = append(p.Update, collation.Row{GUID: journal.GUID{8: 2}, Job: st.Job.ID, Kind: journal.MessageRequest})
	},
	"recall nothing": func(p *collation.Plan, _ *collation.State) {
		p.Recall = append(p.Recall, collation.RowKey{Job: journal.JobID{8: 3}, GUID: journal.GUID{8: 3}})
	},
	"unwait nothing": func(p *collation.Plan, _ *collation.State) {
		p.Unwait = append(p.Unwait, collation.Unwait{GUID: journal.GUID{8: 4}})
	},
	"unwait count": func(p *collation.Plan, _ *collation.State) {
		for i := range p.Unwait {
			p.Unwait[i].Count++
		}
	},
	"wait twice":     func(p *collation.Plan, _ *collation.State) { p.Waits = append(p.Waits, p.Waits...) },
	"undead nothing": func(p *collation.Plan, _ *collation.State) { p.Undead = append(p.Undead, journal.GUID{8: 5}) },
}

func seq(p *collation.Plan, by int64) {
	if p.Entry != nil {
		p.Entry.Seq += by
	}
}
