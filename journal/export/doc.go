// Package export is the file format in which journals leave the database: JSON
// Lines (spec 2.6). A header line names one job and the head of its main chain;
// then comes one line per entry, main chain first, each chain by seq, with the
// stored bytes in base64 and the hash beside them. Nothing is encoded again, so
// that what is verified is what was stored (J9). Several jobs may follow one
// another in a file, each with its header.
//
//	{"format":"quipu-export-v2","space":"shop","job":"…","generation":1,"key":"o-7","head":{"seq":9,"hash":"…"},"flow":"…"}
//	{"s":1,"h":"…","b":"…"}
//	{"c":"…","s":1,"h":"…","b":"…"}
//
// Every line has one spelling, the one that Writer writes; Reader refuses every
// other. Both stream: they hold one line at a time. The package is pure over
// io.Reader and io.Writer; it checks the form of a line, not what the entries
// say: that is for package replay.
package export
