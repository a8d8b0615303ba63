package journal_test

// goldenBody is the body of full.
const goldenBody = `{"a":"charge","ab":2,"as":"c","b":{"b":7,"by":"signal","ch":"AAAAAAAAAAAAAAAAAAAAEw","e":{"c":"error","d":{"n":1.5},"m":"card \"declined\"","s":"main.go:1\n\tat f"},"el":6,"n":4,"o":{"ok":true},"of":{"k":"signal","n":"review","p":"3"},"p":[{"f":"9223372036854775807","k":"sleep","n":"cool-off","p":"1"},{"fl":"shipping","in":{"n":1},"k":"child","ky":"order-42","n":"ship","p":"2.0.1","t":"reviewed","v":"3"}],"q":"AAAAAAAAgACAAAAAAAAABw","r":"CAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAg","ra":"1500000","rn":8,"sg":"AAAAAAAAgACAAAAAAAAAEg","st":500,"tk":{"c":"AAAAAAAAgACAAAAAAAAAIg","f":1,"ge":1,"s":5},"tn":2,"ty":3,"u":1,"w":"ann"},` +
	`"bd":{"h":"DwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA8","s":4},"by":{"b":"b1","w":"w1"},"c":{"e":{"c":"error","d":{"n":1.5},"m":"é😀","s":"main.go:1\n\tat f"},"o":null,"s":"failed","st":500},` +
	`"d":",0,0","di":["AAAAAAAAgACAAAAAAAAAFg","AAAAAAAAgACAAAAAAAAAFw"],"do":"ewcst","e":{"e":{"c":"error","d":{"n":1.5},"m":"no","s":"main.go:1\n\tat f"},"f":"7","fi":{"a":1700000000000001,"d":9,"e":"connection reset","n":"looked","v":"bank.Charges"},"k":"EQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABE","l":1,"n":1,"nm":"pay","p":"4.1.2","r":[1,2],"tk":{"c":"AAAAAAAAgACAAAAAAAAAIQ","f":1,"ge":1,"s":7},"tn":2},` +
	`"el":[7,5,"AAAAAAAAgACAAAAAAAAAGw"],"f":{"d":"EAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABA","n":"order","v":"1"},` +
	`"fr":{"a":"charge","c":[{"a":"ship","d":",0,3","el":2,"j":"AAAAAAAAAAAAAAAAAAAAHw","of":{"k":"child","n":"ship","p":"1"}}],"d":",0,0","ge":2,"h":"HQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB0","j":"AAAAAAAAAAAAAAAAAAAAHA","r":"the card is valid again","rg":1,"rj":"AAAAAAAAAAAAAAAAAAAAHg","s":40,"w":"ann","x":{"at":12,"ge":3,"j":"AAAAAAAAAAAAAAAAAAAAJA"}},` +
	`"g":"AAAAAAAAgACAAAAAAAAABQ","ge":3,"i":{"total":9007199254740993},"j":[["meet",",0,0,0","000010200000000",1]],` +
	`"k":"order-42","l":"201100000000001","nx":"AAAAAAAAAAAAAAAAAAAAIA","o":0,"op":{"a":"retry","l":"ops","r":"again","w":"ann"},"p":{"a":"ship","aw":1,"d":",0,3","dp":3,"g":"AAAAAAAAgACAAAAAAAAAGQ","j":"AAAAAAAAAAAAAAAAAAAAGA","s":"shop","tn":2},` +
	`"q":{"by":"timer","e":{"c":"error","d":{"n":1.5},"m":"gathered","s":"main.go:1\n\tat f"},"o":[null],"st":500,"tk":{"c":"AAAAAAAAgACAAAAAAAAAIw","f":1,"ge":2,"s":6}},` +
	`"r":"000111100000001","rp":[{"c":"semaphore","j":"1","r":"order-42","s":"7","t":"jobs"}],"s":[{"a":"next","d":",0,0,0","g":"AAAAAAAAgACAAAAAAAAACQ","i":"AAAAAAAAgACAAAAAAAAAGg","l":"000000000000001","n":2,"t":"t.x"},{"a":"","as":"start","at":"9223372036854775807","g":"AAAAAAAAgACAAAAAAAAAFA","j":"AAAAAAAAgACAAAAAAAAAFA"}],` +
	`"se":0,"sp":"shop","t":1700000000000000,"tg":["customer:42","vip"],"tr":"00-aa-bb-01","up":[{"g":"AAAAAAAAgACAAAAAAAAACg","h":"parked","k":"answer","n":"9223372036854775807","tn":1,"ty":2}],` +
	`"v":3,"w":[{"g":"AAAAAAAAgACAAAAAAAAAFQ","k":"o-42","r":1,"t":"paid"}],"wd":["AAAAAAAAgACAAAAAAAAADA","AAAAAAAAgACAAAAAAAAADQ"],` +
	`"wr":{"m":"90 entries","r":"stuck"},"ws":[{"a":"feed","d":",0,1","e":1,"n":3,"sg":"AAAAAAAAgACAAAAAAAAAJA","w":"bob"}],"x":"AAAAAAAAgACAAAAAAAAACw"}`

// goldenHashes are h₀, h₁ over goldenBody and h₂ of its chain.
var goldenHashes = [3]string{
	"9b81745bd642efa8676fd215eed24c849e839d413dfcb05878bc513286dff50f",
	"c421f18aa8160bf490d3e75c9634b5a7a78a2654eb08efe021182bbf36397960",
	"02e8801c76cb3b9402a012dc8b045594f561b29978f7006336356e62a7e16f62",
}
