// Package canonical gives JSON one spelling, so that equal values have equal
// bytes and bytes can be hashed, chained and compared (spec 2.2).
//
// [Payload] is for user data: numbers are exact decimals of any size within limits,
// keys are any UTF-8. It puts object keys in the order of their bytes, drops white
// space and writes a string with as few escapes as JSON allows.
//
// What has no unambiguous meaning is refused with an [*Error] that names the
// place; it is never repaired: two keys of one name, U+0000, half a surrogate
// pair, invalid UTF-8, numbers and nesting beyond the limits, anything behind
// the value.
//
// A [Scanner] reads JSON in any spelling, part by part, and says where the first
// fault is. It is what all of Quipu reads JSON with that it takes apart itself:
// entries, messages, flows.
//
// It passes once over its input, and a canonical form is copied only from the
// first byte on that is not canonical. Input that already is canonical, the
// common case on the engine's way, is returned as it is, without an allocation.
package canonical
