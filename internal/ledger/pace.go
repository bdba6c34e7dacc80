package ledger

// Bounds of Entry.TaskFragments: rewrites of the least are tried in any case, and beyond the most there is nothing to learn.
const (
	leastTaskFragments = 4
	mostTaskFragments  = 1 << 16
)

// RewriteLost notes that a rewrite of so many fragments came to nothing because others changed the table meanwhile: the next ones are
// half as large.
func (e Entry) RewriteLost(fragments int) Entry {
	e.TaskFragments = max(fragments/2, leastTaskFragments)
	return e
}

// RewriteWon notes a rewrite that was committed: where it was as large as allowed, the next ones may be twice as large.
func (e Entry) RewriteWon(fragments int) Entry {
	if e.TaskFragments == 0 || fragments < e.TaskFragments {
		return e
	}
	if e.TaskFragments *= 2; e.TaskFragments > mostTaskFragments {
		e.TaskFragments = 0
	}
	return e
}
