//go:build mutant_receipt

package collation

// guardReceipt is always true, but for the mutant that shows what it is for:
// a message that has a receipt goes on where its digits say (C5).
const guardReceipt = false
