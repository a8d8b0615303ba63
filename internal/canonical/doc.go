// Package canonical gives JSON one spelling, so that equal values have equal bytes, which can
// be hashed, chained and compared (rules 2.2).
//
// [Payload] is for user data: numbers are exact decimals of any size within limits, and keys
// are any UTF-8. It sorts object keys by their bytes, drops white space, and writes strings
// with as few escapes as JSON allows.
//
// What has no unambiguous meaning is refused with an [*Error] that names the place, and never
// repaired: two keys of one name, U+0000, half a surrogate pair, invalid UTF-8, numbers and
// nesting beyond the limits, text after the value.
//
// A [Scanner] reads JSON in any spelling, part by part, and reports the first fault. Quipu
// reads entries, messages and flows with it.
//
// It reads its input once. A canonical form is a copy only from the first byte that is not
// canonical. Input that is canonical, the common case in the engine, is returned as it is,
// without an allocation.
package canonical
