// Package comingfrom has the worked ports of docs/coming-from.md: programs as one would write them
// for Temporal, River and DBOS, written for Quipu.
package comingfrom
