// Package edit changes Go values by lines of text, so that a test can say in a file under
// testdata what is changed in a value, beside what follows from it.
//
//	4.Updated[0].Turn = 3          a field; a name alone is what Root gives
//	4.Ledger += 200_000_000_000    a sum of products of numbers and Names
//	6.Updated = @5.Updated         what stands at another place
//	4.GUID = request(@3.GUID, 0)   what a function of Names gives
//	4.Marks[0] swap 4.Marks[1]
//	4.GUID flip                    another byte or id: a bit of its first byte
//	4.Result zero                  nil, or the zero value
//	4.Waits append @4.Waits[0]     one more; without a value, a zero one
//	4.Waits append {Topic: ok, Repeat: true}
//	4.Waits[0] insert @5.Waits[0]  one more before it
//	4.Waits[-1] drop               one less; the last one is -1
//	Rows clear                     an empty map
//	Rows[Kind=request].Turn = 2    the first element, by its key or index, with that field; * is any
//	wait(ok, order.ok)             a function of Names alone; the last argument may contain commas
//	Rows[07].Kind = leg1           the element of that key, a new one if there is none
//
// Pointers and maps on the way are followed, and made where they are nil. Ids are bytes in hex,
// from the first one on; the fields of a key that is a struct are parted by slashes.
package edit
