-- epoch: the epoch of the space (T4).
SELECT epoch FROM space
