// Package archive writes exports to files: of jobs that are asked for, and of whole
// partitions of expired jobs before they are dropped (W11). WriteFile puts a file in
// place when it is whole; To is what retention keeps partitions with.
package archive
