package effect

// lock is a mutex that is held during calls of the store, however long they take. It is a
// channel because a testing/synctest bubble counts a goroutine that waits for a channel
// as blocked, but not one that waits for a sync.Mutex.
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
