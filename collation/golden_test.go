package collation_test

// goldenIDs were derived from the rules by a second program.
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
	"mailbox":          "83ac8892-feb3-8871-9d7f-2da3f7e05878",
	"signal":           "8cb28a09-31af-857e-b6cc-cae2dc1a01a9",
	"signal, sent":     "bbb29e30-6644-85e4-bf4d-26f31891fd12",
	"wakeup, timer":    "fafcff02-4aff-8966-9cd4-a46705a4610b",
	"wakeup, signal":   "830f6ed5-eba2-8229-b32a-c1abb246329d",
	"wakeup, pass":     "8c9d8e69-cb3d-892f-b235-4cc2d05ff0d8",
	"cycle":            "ed885b2c-7077-8918-8dc4-79f328a71c01",
	"join":             "df5d2ced-cfa5-8ce1-a421-89d6480ecdee",
	"child":            "66966ccc-3687-8711-bee8-33471a569b9c",
	"child, turn":      "16791ead-5cdc-8970-add7-f4e9a280f79d",
	"outcome":          "00a5ce87-c673-8912-a478-f1d77c70364b",
	"interrupt":        "6834da43-a328-8947-8322-7dde79c80424",
	"interrupt, asked": "13a76bdb-e962-81ee-999d-ac9e8bd0715e",
	"pause, sleep":     "99fbe751-548c-8dff-bf95-d7b7f4b1030b",
	"pause, signal":    "ade1f547-f988-873b-a767-1545bda26939",
	"pause, child":     "b94b2c53-ab7f-8e22-8ba4-a9c4d2e16097",
	"timeout":          "82fab2a0-2cfc-8f25-8b13-5bd0076408e6",
	"undo":             "f2ff647d-6f3f-88f1-8518-ef4ec9a2943e",
}

// goldenKeys are the first 16 bytes of the SHA-256 of the text.
var goldenKeys = map[string]string{
	",0":        "bcf5735a1e73af9d0f0eb155c1b0ae87",
	",0,0":      "a02be379d03ef2c0207dc31164e91c02",
	",0^57,3,0": "e463e454a0d27717023b2c317c212d96",
}
