// Package archive writes exports to files: of selected jobs, and of whole partitions of expired
// jobs before they are dropped (W11). WriteFile puts a file in place when it is complete.
// Retention keeps partitions with To.
package archive
