package drivertest

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

// The promise of conversion: a holder takes another mode beside what it has, and nobody gets in between. client.go has
// the tools.

func conversion() []behaviour {
	able := func(sentence string, run func(*trial), needs ...driver.Ability) behaviour {
		return behaviour{
			sentence: sentence, run: run, kinds: []driver.Kind{driver.KindRWMutex}, wants: converts, needs: needs,
		}
	}
	return []behaviour{
		able("an upgrade waits for the other readers and keeps new ones out", upgradeWaitsForReaders),
		able("an upgrade goes before a writer that waits", upgradeGoesFirst, driver.Order),
		able("an upgrade has a new token and nonce, and who re-enters has them too", upgradeIsANewGrant),
		able("the holds of an upgrade end in any order", upgradeEndsInAnyOrder),
		able("an upgrade whose read ends while it waits is refused", upgradeOutlivesNoRead),
		able("an upgrade whose read is broken while it waits is refused", upgradeOutlivesNoBreak, driver.Breaking),
		able("an upgrade that is given up leaves the read as it was", abandonedUpgrade),
		able("a try of an upgrade is refused beside readers, and queues nowhere", triedUpgrade),
		able("a plain reader that asks to write is told of the deadlock at once", readerDoesNotUpgrade),
		able("a reader does not wait for the upgradeable read of another", readerDoesNotWaitForUpgradeable),
		able("a writer reads beside its write, and nobody gets in between", writerDowngrades),
		able("a read beside a read does not queue", readBesideRead),
		able("nothing is granted beside a hold that is over", besideNothing),
		able("a conversion asked again after a lost reply is the same grant", conversionAfterLostReply),
		able("a copy of a conversion that arrives late takes nothing", lateCopyOfConversion),
		able("only locks of readers and writers are converted", onlyRWIsConverted),
	}
}

// Readers that come later stand behind the upgrade, and the upgradeable read keeps other writers out to the end.
func upgradeWaitsForReaders(tr *trial) {
	a, b := tr.client(), tr.client()
	read := a.take(a.upgradeable())
	other := b.take(b.reader())
	up := read.queue(a.writer())
	b.comesToBeRefused(b.reader, "with an upgrade waiting")
	late := b.queue(b.reader())
	up.stillWaits("with another reader inside")
	late.stillWaits("behind an upgrade that waits")
	other.release()
	write := up.granted("after the last other reader")
	late.stillWaits("with the upgraded writer inside")
	write.release()
	late.granted("when the write is over and the upgradeable read left").release()
	b.isRefused(b.writer(), "with the upgradeable reader inside")
	read.release()
	b.fits(b.writer(), "a writer in the end")
}

// A writer that came earlier waits for the upgradeable read to end, so the upgrade behind it would wait for itself.
func upgradeGoesFirst(tr *trial) {
	a, b := tr.client(), tr.client()
	read := a.take(a.upgradeable())
	other := b.take(b.reader())
	writer := b.queue(b.writer())
	up := read.queue(a.writer())
	other.release()
	write := up.granted("before a writer that came earlier")
	writer.stillWaits("with the upgraded writer inside")
	write.release()
	writer.stillWaits("with the upgradeable reader inside")
	read.release()
	writer.granted("after both").release()
}

// A fence must see the write as newer than the read, and everything that its owner has beside it as the same.
func upgradeIsANewGrant(tr *trial) {
	a := tr.client()
	read := a.take(a.upgradeable())
	read.isSame(read.take(a.reader(), "beside an upgradeable read"))
	write := read.take(a.writer(), "an upgrade with nobody else inside")
	if write.g.Token < read.g.Token+uint64(read.g.Tokens) || write.g.Nonce == read.g.Nonce {
		tr.Fatalf("an upgrade is granted token %d and nonce %q after %d and %q, want new ones",
			write.g.Token, write.g.Nonce, read.g.Token, read.g.Nonce)
	}
	write.isSame(read.take(a.reader(), "beside an upgraded read"))
	write.isSame(write.take(a.writer(), "beside a write"))
}

// The two holds live on their own.
func upgradeEndsInAnyOrder(tr *trial) {
	a, b := tr.client(), tr.client()
	read := a.take(a.upgradeable())
	write := read.take(a.writer(), "an upgrade")
	read.release()
	b.isRefused(b.reader(), "with the write left")
	write.release()
	b.fits(b.writer(), "a writer after both")

	read = a.take(a.upgradeable())
	write = read.take(a.writer(), "an upgrade")
	write.release()
	b.fits(b.reader(), "a reader with the upgradeable read left")
	b.isRefused(b.upgradeable(), "with the upgradeable read left")
	write = read.take(a.writer(), "a second upgrade")
	write.release()
	read.release()
	b.fits(b.writer(), "a writer after both")
}

// What was read may be out of date once the read is over.
func upgradeOutlivesNoRead(tr *trial) {
	a, b := tr.client(), tr.client()
	read, other := a.take(a.upgradeable()), b.take(b.reader())
	up := read.queue(a.writer())
	read.release()
	up.isLost("whose read was released")
	other.release()
	b.fits(b.writer(), "a writer in the end")
}

// The same if an operator has ended the read.
func upgradeOutlivesNoBreak(tr *trial) {
	a, b := tr.client(), tr.client()
	read, other := a.take(a.upgradeable()), b.take(b.reader())
	up := read.queue(a.writer())
	tr.must(b.breaks(tr.key(driver.KindRWMutex), read.g.Token), "break of the upgradeable read")
	up.isLost("whose read was broken")
	other.release()
	b.fits(b.writer(), "a writer in the end")
}

// The upgrade kept new readers out; given up, it must let them in again.
func abandonedUpgrade(tr *trial) {
	a, b := tr.client(), tr.client()
	read, other := a.take(a.upgradeable()), b.take(b.reader())
	up := read.queue(a.writer())
	late := b.queue(b.reader())
	up.cancel()
	if !up.ends(prompt) {
		tr.Fatalf("a cancelled upgrade has not returned within %v", prompt)
	}
	a.undo(up.r)
	late.granted("after the upgrade was given up").release()
	b.isRefused(b.upgradeable(), "with the upgradeable read left")
	again := read.queue(a.writer())
	other.release()
	again.granted("a second upgrade").release()
	read.release()
	b.fits(b.writer(), "a writer in the end")
}

// A refused try of an upgrade must not close the door for readers.
func triedUpgrade(tr *trial) {
	a, b := tr.client(), tr.client()
	read, other := a.take(a.upgradeable()), b.take(b.reader())
	r := a.writer()
	r.Try = true
	read.isDenied(r, driver.ErrHeld, "a try of an upgrade with another reader inside")
	b.fits(b.reader(), "a reader after the refusal")
	other.release()
	r = a.writer()
	r.Try = true
	read.take(r, "a try of an upgrade with nobody else inside").release()
	read.release()
}

// It would wait for its own read, for ever.
func readerDoesNotUpgrade(tr *trial) {
	a, b := tr.client(), tr.client()
	read, other := a.take(a.reader()), b.take(b.reader())
	read.isDenied(a.writer(), driver.ErrDeadlock, "a write beside a plain read")
	b.fits(b.reader(), "a reader after the refusal")
	other.release()
	read.isDenied(a.writer(), driver.ErrDeadlock, "a write beside the only read")
	read.release()
	b.fits(b.writer(), "a writer in the end")
}

// The holder of the upgradeable read may upgrade at any moment, and then waits for this reader.
func readerDoesNotWaitForUpgradeable(tr *trial) {
	a, b := tr.client(), tr.client()
	read, other := a.take(a.reader()), b.take(b.upgradeable())
	read.isDenied(a.upgradeable(), driver.ErrDeadlock, "an upgradeable read beside a read, with that of another inside")
	other.release()
	read.take(a.upgradeable(), "an upgradeable read beside a read").release()
}

// At each instant one of the two is held, so a writer that waits never gets in between; readers may.
func writerDowngrades(tr *trial) {
	a, b := tr.client(), tr.client()
	write := a.take(a.writer())
	writer := b.queue(b.writer())
	read := write.take(a.reader(), "beside a write")
	write.isSame(read)
	write.release()
	writer.stillWaits("with the read left of a write")
	read.release()
	writer.granted("after the read").release()

	write = a.take(a.writer())
	reader := b.queue(b.reader())
	read = write.take(a.reader(), "beside a write")
	write.release()
	reader.granted("with a read left of the write").release()
	read.release()
}

// A writer waits in between: a read that queued behind it would wait for its own owner.
func readBesideRead(tr *trial) {
	a, b := tr.client(), tr.client()
	one := a.take(a.reader())
	writer := b.queue(b.writer())
	two := one.take(a.reader(), "beside a read, with a writer waiting")
	one.release()
	writer.stillWaits("with the second read left")
	two.release()
	writer.granted("after both reads").release()
}

// Somebody else may have been inside since that hold ended.
func besideNothing(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.upgradeable())
	h.release()
	h.isDenied(a.reader(), driver.ErrLost, "a read beside a hold that was released")
	h.isDenied(a.writer(), driver.ErrLost, "an upgrade of a hold that was released")
	b.fits(b.writer(), "a writer after the refusals")
	next := b.take(b.reader())
	h.isDenied(a.reader(), driver.ErrLost, "a read beside a hold that was released, with others inside")
	next.release()
	b.fits(b.writer(), "a writer in the end")
}

// The repetition is the same grant, and one release ends it.
func conversionAfterLostReply(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.Convert, Count: 1, Drop: faulty.Reply}), tr.client()
	read := a.take(a.upgradeable())
	r := a.writer()
	_, err := read.beside(r)
	tr.mustMatch(err, driver.ErrUnavailable, "an upgrade whose reply is lost")
	b.isRefused(b.reader(), "after an upgrade whose reply is lost")
	write := read.take(copyOf(r), "the same upgrade once more")
	again := read.take(copyOf(r), "the same upgrade a third time")
	write.isSame(again)
	write.release()
	b.fits(b.reader(), "a reader after one release of the write")
	read.isDenied(copyOf(r), driver.ErrLost, "an upgrade that was released")
	read.release()
}

// The copy arrives after the write was released. An engine that has forgotten the ID would grant it again, with nobody
// to release it.
func lateCopyOfConversion(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.Convert, Copy: settle}), tr.client()
	read := a.take(a.upgradeable())
	read.take(a.writer(), "an upgrade").release()
	tr.pass(2 * settle)
	b.fits(b.reader(), "a reader after a late copy of the upgrade")
	read.release()
	b.fits(b.writer(), "a writer in the end")
}

// Other kinds have no modes.
func onlyRWIsConverted(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	h.isDenied(a.ask(tr.mutex()), driver.ErrUnsupported, "a mutex beside a mutex")
	h.release()
	b.findsFree(tr.mutex(), "in the end")
}
