package handoff

import "testing"

func smallBlocks(r Rules) *tokens { return &tokens{rules: r, block: 4} }

func TestSoundProtocol_HasOnlyGrowingTokens(t *testing.T) {
	bounds := func(block int8) *tokens { return &tokens{rules: Sound(), block: block} }
	requireSound(t, 1_000, bounds(8), bounds(8), bounds(32))
}

func TestRule_7_BlocksOnlyIfTheClockIsAhead_WithoutIt_TokensGoBackAtAFailover(t *testing.T) {
	r := Sound()
	r.BlockIfBehind = false
	requireFault(t, smallBlocks(r), TokenNotNewer)
}

func TestRule_7_TheBlocksEndIsStored_WithoutIt_ALaterGrantGetsATokenInsideTheBlock(t *testing.T) {
	r := Sound()
	r.StoreBlockEnd = false
	requireFault(t, smallBlocks(r), TokenNotNewer)
}
