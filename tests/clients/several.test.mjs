// Three calls in flight when the page dies; each is resumed by its own cursor.
import assert from 'node:assert/strict';
import { checkPriming, checkResult, checkWhole, messageBytes, notesOf, notifications, utility } from './lib/expect.mjs';
import { scenarios } from './lib/scenario.mjs';

async function three(world) {
    const { wire, server, pages } = world;
    const page = await world.heldPage(3 * messageBytes);
    const short = utility(2, 200, 'short one');
    const long = utility(3, 200, 'long one');
    page.call('short', notifications, short);
    page.call('long', notifications, long);
    const quiet = page.call('quiet', 'longRunningOperation', { duration: 2.5, steps: 5 });
    await page.until(() => quiet.cursor && [short, long].every((args) => notesOf(page.seen, args).length >= 3));
    const kept = await page.leave();
    // More than the page has seen.
    const seen = [short, long].flatMap((args) => notesOf(page.seen, args)).length;
    await server.until((now) => now.belay_events_appended_total >= seen + 4);

    const next = await world.page(kept);
    const { calls } = kept;
    const results = await Promise.all([calls.short, calls.long, calls.quiet].map((call) => next.resume(call)));
    checkResult(results[0], short);
    checkResult(results[1], long);
    assert.equal(results[2].content[0].text, 'Long running operation completed. Duration: 2.5 seconds, Steps: 5.');
    checkWhole(pages, short);
    checkWhole(pages, long);
    assert.equal(next.sessionId, kept.sessionId);

    const marks = { short: 'short one', long: 'long one', quiet: 'Long running operation' };
    for (const [key, call] of Object.entries(calls)) {
        const exchanges = wire.of(call);
        assert.equal(exchanges.length, 2);
        for (const exchange of exchanges) {
            checkPriming(exchange);
            for (const [other, mark] of Object.entries(marks))
                assert.ok(other === key || !exchange.text.includes(mark), `${key} carries nothing of ${other}`);
        }
        assert.ok(exchanges[1].text.includes(marks[key]));
    }
    const after = await server.metrics();
    assert.equal(after.belay_sessions, 1);
    assert.equal(after.belay_calls_started_total, 3);
}

scenarios('several calls', [
    ['three in flight, each resumed by its own cursor (AS-08, AS-33)', {}, three],
]);
