package console

import (
	"slices"

	"github.com/quipu-journal/quipu/view"
)

// The parts of a job's page that stand behind tabs, as the parameter tab has them.
const (
	tabActivities = "activities"
	tabOpen       = "open"
	tabJournal    = "journal"
	tabLedgers    = "ledgers"
	tabEffects    = "effects"
	tabMessages   = "messages"
	tabChildren   = "children"
)

// tab is one of the tabs of a job's page.
type tab struct {
	Name, Text string
	N          int // of what is behind it; 0: nothing, or it is not counted
}

// tabs are the names of all of them, in their order.
var tabs = []string{tabActivities, tabOpen, tabJournal, tabLedgers, tabEffects, tabMessages, tabChildren}

// tabOf is the tab that an address names; otherwise that of the activities.
func tabOf(name string) (string, error) {
	if name == "" {
		return tabActivities, nil
	}
	if !slices.Contains(tabs, name) {
		return "", bad("tab %.40q: use one of %v", name, tabs)
	}
	return name, nil
}

// Tabs are the tabs of the page, with what stands behind each.
func (p *jobPage) Tabs() []tab {
	total := func(shown, from, more int) int { return shown + from + more }
	return []tab{
		{tabActivities, "Activities", total(len(p.Activities.Shown), 0, p.Activities.More)},
		{tabOpen, "Open", total(len(p.Open.Shown)+len(p.Waits.Shown), 0, p.MoreOpen())},
		{tabJournal, "Journal", total(len(p.Events.Shown), p.Events.From, p.Events.More)},
		{tabLedgers, "Ledgers", total(len(p.Ledgers.Shown), 0, p.Ledgers.More)},
		{tabEffects, "Effects", total(len(p.Effects.Shown), 0, p.Effects.More)},
		{tabMessages, "Messages", total(len(p.Messages.Shown), p.Messages.From, p.Messages.More)},
		{tabChildren, "Started jobs", len(p.Children)},
	}
}

// At is the address of the page with another of its tabs.
func (p *jobPage) At(page, tab string) string {
	for _, name := range []string{"from", "q", "verify"} {
		page = with(page, name, "")
	}
	return with(page, "tab", tab) + "#h-parts"
}

// trouble is what of the jobs that a job started a person would see first.
func trouble(x *view.Child) int {
	switch x.State {
	case "failed", "quarantined":
		return 0
	case "interrupted":
		return 1
	case "", "open":
		return 2
	}
	return 3
}
