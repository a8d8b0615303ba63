package orders

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Count is the number of orders of the demo, and seed the seed that makes them.
const (
	Count = 2000
	seed  = 15_021
)

// MaxLines is the most items of one order.
const MaxLines = 6

var (
	firstNames = strings.Fields("Ada Amara Björn Chen Dilara Émile Farah Grace Hiro Inés Jonas Katarzyna Luís Mei Nkechi Oana Priya Quentin Rosa Søren Tomás Ulrike Wanjiru Yuki Zoë")
	lastNames  = strings.Fields("Abebe Brandt Castillo Dubois Eriksen Fischer García Hopper Ito Jansen Kowalska Lovelace Müller Nakamura Okafor Petrov Quispe Rossi Sato Tanaka Ünal Varga Wang Yupanqui Zhou")
	// markets are where customers live: country, tax, and index of the currency.
	markets = []market{
		{"DE", "0.19", 0},
		{"DE", "0.07", 0},
		{"FR", "0.2", 0},
		{"FI", "0.255", 0},
		{"ES", "0.21", 0},
		{"US", "0.08875", 1},
		{"US", "0.0625", 1},
		{"GB", "0.2", 2},
		{"JP", "0.1", 3},
		{"KW", "0", 4},
	}
)

type market struct {
	country, tax string
	currency     int
}

// Generate returns the first count orders, always the same ones.
func Generate(count int) []Line {
	r := rand.New(rand.NewPCG(seed, seed))
	lines := make([]Line, count)
	for n := range lines {
		lines[n] = generate(r, n+1)
	}
	return lines
}

func generate(r *rand.Rand, n int) Line {
	at := markets[r.IntN(len(markets))]
	money := currencies[at.currency]
	o := Order{
		Order:    fmt.Sprintf("order-%05d", n),
		Customer: Customer{Name: pick(r, firstNames) + " " + pick(r, lastNames), Country: at.country, Terms: "card"},
		Currency: money.code,
		Tax:      json.Number(at.tax),
		Shipping: decimal(money.of(int64(r.IntN(4))*2_450), money.places),
		Card:     "tok_visa_" + digits(r),
	}
	switch c := r.IntN(100); {
	case c < 4:
		o.Card = refusedCard + digits(r)
	case c < 7:
		o.Card, o.Customer.Terms = refusedCard+digits(r), "invoice"
	case c < 13:
		o.Card = flakyCard + digits(r)
	case c < 20:
		o.Customer.Terms = "invoice" // may pay later, and has a good card
	}
	soldOut := r.IntN(100) < 5
	for range 1 + r.IntN(MaxLines) {
		o.Lines = append(o.Lines, item(r, money, soldOut))
		soldOut = false
	}
	return Line{Flow: "order", Key: o.Order, Input: o}
}

// item takes a random product, one that is sold out only if soldOut is set.
func item(r *rand.Rand, money currency, soldOut bool) Item {
	p := Catalogue[r.IntN(len(Catalogue))]
	for p.SoldOut != soldOut {
		p = Catalogue[r.IntN(len(Catalogue))]
	}
	quantity := strconv.Itoa(1 + r.IntN(5))
	if p.ByWeight {
		quantity = string(decimal(int64(1+r.IntN(50))*50, 3)) // kilograms, in steps of 50 g
	}
	return Item{
		SKU: p.SKU, Name: p.Name, Price: decimal(money.of(p.Price), money.places), Quantity: json.Number(quantity),
	}
}

// of converts thousandths of the euro to the currency's smallest unit, at least 1.
func (c currency) of(milli int64) int64 {
	if milli == 0 {
		return 0
	}
	units := milli * c.rate // in millionths of a whole unit of the currency
	for range 6 - c.places {
		units /= 10
	}
	return max(units, 1)
}

// decimal formats units of 10^-places without trailing zeros.
func decimal(units int64, places int) json.Number {
	s := fmt.Sprintf("%0*d", places+1, units)
	if places == 0 {
		return json.Number(s)
	}
	s = s[:len(s)-places] + "." + s[len(s)-places:]
	return json.Number(strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func digits(r *rand.Rand) string { return fmt.Sprintf("%04d", r.IntN(10_000)) }
