package orders

// Product is something the shop sells. Price is in thousandths of the euro, per
// piece or per kilogram.
type Product struct {
	SKU, Name string
	Price     int64
	ByWeight  bool
	// SoldOut products cannot be reserved: the order is refunded.
	SoldOut bool
}

// Catalogue is everything the shop sells.
var Catalogue = []Product{
	{SKU: "tea-assam-100", Name: "Assam tea, 100 g", Price: 4_950},
	{SKU: "tea-sencha-100", Name: "Sencha tea, 100 g", Price: 7_200},
	{SKU: "coffee-huila-250", Name: "Huila coffee, 250 g", Price: 9_900},
	{SKU: "coffee-sidamo-1000", Name: "Sidamo coffee, 1 kg", Price: 28_500},
	{SKU: "honey-heather-500", Name: "Heather honey, 500 g", Price: 8_750},
	{SKU: "chocolate-70-100", Name: "Chocolate 70 %, 100 g", Price: 3_400},
	{SKU: "nuts-walnut", Name: "Walnuts", Price: 12_900, ByWeight: true},
	{SKU: "nuts-hazel", Name: "Hazelnuts", Price: 15_400, ByWeight: true},
	{SKU: "cheese-gouda", Name: "Old Gouda", Price: 21_900, ByWeight: true},
	{SKU: "rice-basmati", Name: "Basmati rice", Price: 4_200, ByWeight: true},
	{SKU: "sweet-mint", Name: "Mint drop", Price: 100},
	{SKU: "sweet-anise", Name: "Anise drop", Price: 200},
	{SKU: "cup-blue", Name: "Cup, blue glaze", Price: 18_000},
	{SKU: "pot-iron-08", Name: "Iron pot, 0.8 l", Price: 64_500},
	{SKU: "whisk-bamboo", Name: "Bamboo whisk", Price: 14_300},
	{SKU: "kettle-copper", Name: "Copper kettle", Price: 129_000, SoldOut: true},
	{SKU: "tea-gyokuro-50", Name: "Gyokuro tea, 50 g", Price: 26_700, SoldOut: true},
}

// SoldOut reports whether a product cannot be reserved. That holds for unknown products, too.
func SoldOut(sku string) bool {
	for i := range Catalogue {
		if Catalogue[i].SKU == sku {
			return Catalogue[i].SoldOut
		}
	}
	return true
}

// currency is a currency with its decimal places and its rate to the euro, in thousandths.
type currency struct {
	code   string
	places int
	rate   int64
}

var currencies = []currency{
	{"EUR", 2, 1000},
	{"USD", 2, 1085},
	{"GBP", 2, 842},
	{"JPY", 0, 162_400},
	{"KWD", 3, 333},
}

// Places returns the number of decimal places of the currency's amounts.
func Places(code string) int {
	for _, c := range currencies {
		if c.code == code {
			return c.places
		}
	}
	return 2
}
