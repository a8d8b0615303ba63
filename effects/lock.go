package effects

// lock is a mutex that is held over calls of the store. Who waits for it waits for
// them, however long they take; a testing/synctest bubble sees that of a channel, and
// of a sync.Mutex does not.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

// Lock implements sync.Locker.
func (l lock) Lock() { l <- struct{}{} }

func (l lock) tryLock() bool {
	select {
	case l <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock implements sync.Locker.
func (l lock) Unlock() { <-l }
