package collation_test

// goldenIDs were derived from the text of the spec by a second program.
var goldenIDs = map[string]string{
	"job":              "d828a2ee-477c-86b1-be12-664b03a0135d",
	"job, generation":  "c478c7b7-1622-82ee-b015-3ec018721e94",
	"leg1":             "9b4216f2-446a-87b6-a7a5-e7a367045ce4",
	"request":          "38f661f3-cddd-8633-8b34-bf25a0342831",
	"request, element": "5fc15566-df0e-8773-b78f-3695afd7701b",
	"response":         "07d78efa-634a-8a7e-aa0e-76c883c31574",
	"response, turn":   "1f0c343c-1a35-87f0-a9ce-dde774b71f4d",
	"answer":           "7cb72a29-e256-8c69-9bed-e6455d8c11dc",
	"operator":         "34bde879-8fc4-87d2-b973-0d473cc5fd99",
}

// goldenKeys are the first 16 bytes of the SHA-256 of the text.
var goldenKeys = map[string]string{
	",0":        "bcf5735a1e73af9d0f0eb155c1b0ae87",
	",0,0":      "a02be379d03ef2c0207dc31164e91c02",
	",0^57,3,0": "e463e454a0d27717023b2c317c212d96",
}
