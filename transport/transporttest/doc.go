// Package transporttest is the suite that every transport.Bus passes. It holds
// what the port promises and no more: that nothing comes twice, or in order, is
// no promise and is not tested, except for what a bus without faults does with
// one message id.
//
//	func TestBus(t *testing.T) { transporttest.Run(t, open) }
package transporttest
