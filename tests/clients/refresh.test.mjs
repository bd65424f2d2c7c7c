// A page starts a call and dies; the next page has the session id and the call's cursor, and misses nothing.
import assert from 'node:assert/strict';
import {
    checkPriming, checkResult, checkWhole, isResponse, messageBytes, notesOf, notifications, tickCount, utility,
} from './lib/expect.mjs';
import { scenarios } from './lib/scenario.mjs';

/** Starts a call, waits for `count` messages of it, and refreshes the page. It cannot see many more. */
async function startAndLeave(world, args, count) {
    const page = await world.heldPage(count * messageBytes);
    page.call('a', notifications, args);
    await page.until(() => notesOf(page.seen, args).length >= count);
    return page.leave();
}

/** Waits until the server has that many more events of the only call than the pages have seen, or all of them. */
async function missed({ server, pages }, args, count) {
    const seen = notesOf(pages.flatMap((page) => page.seen), args).length;
    const wanted = Math.min(seen + count, tickCount(args) + 3);
    await server.until((now) => now.belay_events_appended_total >= wanted);
}

async function midCall(world) {
    const { server, wire, pages } = world;
    const args = utility(3, 200, 'mid-call');
    const kept = await startAndLeave(world, args, 4);
    await missed(world, args, 3);
    const next = await world.page(kept);
    checkResult(await next.resume(kept.calls.a), args);
    checkWhole(pages, args);
    assert.equal(next.sessionId, kept.sessionId);
    const exchanges = wire.of(kept.calls.a);
    assert.equal(exchanges.length, 2);
    exchanges.forEach(checkPriming);
    await wire.until(() => exchanges[1].ended);
    assert.equal(exchanges[1].ended, 'end', 'the server closes after the result');
    const after = await server.metrics();
    assert.equal(after.belay_sessions, 1);
    assert.equal(after.belay_calls_started_total, 1);
    assert.equal(after.belay_events_appended_total, tickCount(args) + 3);
}

async function duringTheGap(world) {
    const { server, wire, pages } = world;
    const args = utility(1, 200, 'during the gap');
    const kept = await startAndLeave(world, args, 3);
    await server.until((now) => now.belay_calls_running === 0);
    const next = await world.page(kept);
    const call = await next.follow('a', kept.calls.a);
    await next.until(() => next.seen.some(isResponse));
    checkWhole(pages, args);
    assert.equal(next.seen.at(-1).id, kept.calls.a.id, 'the result keeps the id of its request');
    assert.equal(next.sessionId, kept.sessionId);
    // A page that has everything and asks again is told so by 204.
    await next.follow('again', { cursor: call.cursor });
    assert.equal(wire.exchanges.at(-1).status, 204);
    checkWhole(pages, args);
}

async function afterReconnect(world) {
    const { server, wire, pages } = world;
    const args = utility(8, 400, 'after reconnect');
    const kept = await startAndLeave(world, args, 3);
    const next = await world.page(kept);
    await next.follow('a', kept.calls.a);
    assert.equal((await server.metrics()).belay_calls_running, 1, 'the result is still to come');
    await next.until(() => next.seen.some(isResponse));
    checkWhole(pages, args);
    assert.equal(next.seen.at(-1).id, kept.calls.a.id);
    const exchange = wire.of(kept.calls.a).at(-1);
    checkPriming(exchange);
    await wire.until(() => exchange.ended);
    assert.equal(exchange.ended, 'end');
}

async function doubleRefresh(world) {
    const { wire, pages } = world;
    const args = utility(3, 200, 'double');
    const first = await startAndLeave(world, args, 3);
    const second = await world.page(first);
    await second.follow('a', first.calls.a);
    await second.until(() => notesOf(second.seen, args).length >= 4);
    const kept = await second.leave();
    await missed(world, args, 2);
    const third = await world.page(kept);
    checkResult(await third.resume(kept.calls.a), args);
    checkWhole(pages, args);
    assert.equal(third.sessionId, first.sessionId);
    assert.deepEqual(wire.of(first.calls.a).map(({ status }) => status), [200, 200, 200]);
}

async function beforeTheFirstMessage(world) {
    const { wire } = world;
    const page = await world.heldPage(0);
    // No progress token: the result is this call's only message, the priming event its only cursor before it.
    const call = page.call('a', 'longRunningOperation', { duration: 1, steps: 2 });
    await page.until(() => call.cursor);
    const kept = await page.leave();
    const next = await world.page(kept);
    const result = await next.resume(kept.calls.a);
    assert.equal(result.content[0].text, 'Long running operation completed. Duration: 1 seconds, Steps: 2.');
    assert.equal(wire.of(kept.calls.a).length, 2);
}

async function idsRestart(world) {
    const { server, wire, pages } = world;
    const kept = await (await world.page()).leave();
    const first = await world.heldPage(3 * messageBytes, kept);
    const old = utility(8, 400, 'old page');
    first.call('old', notifications, old);
    await first.until(() => notesOf(first.seen, old).length >= 3);
    const saved = await first.leave();
    const next = await world.page(saved);
    const fresh = utility(1, 200, 'new page');
    const call = next.call('new', notifications, fresh);
    await next.until(() => notesOf(next.seen, fresh).length >= 1);
    assert.equal((await server.metrics()).belay_calls_running, 2);
    assert.deepEqual([saved.calls.old.id, call.id], [0, 0], 'both run under the same id');
    const [oldResult, newResult] = await Promise.all([next.resume(saved.calls.old), call.result]);
    checkResult(oldResult, old);
    checkResult(newResult, fresh);
    checkWhole(pages, old);
    checkWhole(pages, fresh);
    for (const [mine, other] of [[saved.calls.old, fresh], [call, old]])
        for (const exchange of wire.of(mine))
            assert.ok(!exchange.text.includes(other.messagePrefix), 'a stream carries its own call only');
}

async function noVersionHeader(world) {
    const { wire, pages } = world;
    const args = utility(2, 200, 'no version');
    const { sessionId, calls } = await startAndLeave(world, args, 3);
    const since = wire.exchanges.length;
    const next = await world.page({ sessionId });
    await next.follow('a', calls.a);
    await next.ping();
    await next.until(() => next.seen.some((message) => isResponse(message) && message.id === calls.a.id));
    checkWhole(pages, args);
    const later = wire.exchanges.slice(since);
    assert.deepEqual(later.map(({ headers }) => headers['mcp-protocol-version']), [undefined, undefined]);
    // The session's version decides, so this is the priming of 2025-11-25.
    checkPriming(later.find(({ stream }) => stream));
}

async function endedByTimeout(world) {
    const { server } = world;
    const args = utility(30, 200, 'too long');
    const kept = await startAndLeave(world, args, 2);
    await server.until((now) => now.belay_calls_running === 0);
    const next = await world.page(kept);
    const result = await next.resume(kept.calls.a);
    assert.equal(result.isError, true);
    assert.equal(result._meta['belay/ended'].reason, 'timed_out');
    assert.equal(typeof result._meta['belay/ended'].retryable, 'boolean');
    assert.ok(result.content[0].text.length > 0);
}

async function refusedCalls(world) {
    const { wire } = world;
    const page = await world.page();
    await assert.rejects(page.call('unknown', 'no-such-tool').result, { code: -32602 });
    const wrong = await page.call('wrong', notifications, { durationSeconds: 'long' }).result;
    assert.equal(wrong.isError, true);
    assert.match(wrong.content[0].text, /durationSeconds/);
    // As a stream, an error would send v1 off to resume it.
    for (const key of ['unknown', 'wrong'])
        assert.ok(!page.calls.get(key).exchange.stream);
    assert.ok(wire.exchanges.every(({ headers }) => !headers['last-event-id']));
    const good = utility(0.2, 100, 'after errors');
    checkResult(await page.call('good', notifications, good).result, good);
}

scenarios('refresh', [
    ['resume mid-call (AS-01)', {}, midCall],
    ['result during the gap (AS-02)', {}, duringTheGap],
    ['result after reconnect (AS-03)', {}, afterReconnect],
    ['double refresh (AS-04)', {}, doubleRefresh],
    ['cut before the first message (AS-06)', {}, beforeTheFirstMessage],
    ['ids restart at 0 while the old call runs (AS-37)', {}, idsRestart],
    ['no version header after the refresh', {}, noVersionHeader],
    ['a call that timed out tells the next page', { flags: ['--call-max-duration', '1s'] }, endedByTimeout],
    ['early errors end a call without a stream', {}, refusedCalls],
]);
