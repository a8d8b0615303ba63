// Package export is the file format for journals outside the database: JSON Lines (2.6). A header
// line names one job and the head of its main chain. Then come the definition of its flow version
// and the outputs that are stored beside its entries (E6), a line each, with the digest under
// which they are stored. Then comes one line per entry, main chain first, each chain by seq, with
// the stored bytes in base64 and their hash. Nothing is encoded anew, so verification sees the
// bytes as stored (J9). A file may have several jobs, each with its header.
//
//	{"format":"quipu-export-v3","space":"shop","job":"…","generation":1,"key":"o-7",
//	 "head":{"seq":9,"hash":"…"},"flow":"…"}
//	{"f":"…","b":"…"}
//	{"o":"…","b":"…"}
//	{"s":1,"h":"…","b":"…"}
//	{"c":"…","s":1,"h":"…","b":"…"}
//
// Every line has exactly one spelling, which Writer writes; Reader refuses any other. Both
// stream, holding one line at a time. The package is pure over io.Reader and io.Writer. It checks
// the form of lines; package replay checks what the entries say.
package export
