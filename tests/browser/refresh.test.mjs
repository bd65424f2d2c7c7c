// The page is reloaded while calls run; the next one shows everything once.
import assert from 'node:assert/strict';
import { expectedNotes, notifications, utility } from '../clients/lib/expect.mjs';
import { eventually } from './lib/eventually.mjs';
import { recovered, scenarios, wholeBrowser } from './lib/scenario.mjs';

/** Nothing is missed but what the scenario is about. */
const quiet = { flags: ['--reference-background', 'off'] };

/** The page goes away until the server has appended `count` more events. */
async function away({ server }, tab, count) {
    await tab.leave();
    const before = (await server.metrics()).belay_events_appended_total;
    await server.until((now) => now.belay_events_appended_total >= before + count);
    await tab.comeBack();
}

async function checkOneSession(server, tab, calls = 1) {
    assert.equal(tab.sessions.length, 1);
    const { belay_sessions: sessions, belay_calls_started_total: started } = await server.metrics();
    assert.deepEqual({ sessions, started }, { sessions: 1, started: calls });
    assert.ok(tab.requests.every(({ method }) => method !== 'DELETE'), 'a page that is unloaded ends nothing');
    assert.deepEqual(tab.requests.filter(({ status }) => status >= 400), []);
    assert.equal(tab.requests.filter(({ message }) => message?.method === 'initialize').length, 1);
}

async function midCall({ open, server }) {
    const tab = await open();
    const args = utility(6, 200, 'mid-call');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    await tab.page.reload();
    await tab.said(['Connected', 'Reconnecting…']);
    await call.checkWhole(args);
    await checkOneSession(server, tab);
}

async function duringTheGap({ open, server }) {
    const tab = await open();
    const args = utility(2, 200, 'in the gap');
    const call = await tab.call(notifications, args);
    await call.reaches(2);
    await tab.leave();
    await server.until((now) => now.belay_calls_running === 0);
    await tab.comeBack();
    await call.checkWhole(args);
    const missed = await call.recovered();
    assert.ok(missed.length > 0, 'something was sent in the gap');
    assert.deepEqual(missed, expectedNotes(args).slice(-missed.length), 'what was missed is the end of it');
    await tab.said(['Reconnecting…', recovered(missed.length)]);
    await tab.says('Connected');
    await checkOneSession(server, tab);
}

async function afterReconnect(world) {
    const { open, server } = world;
    const tab = await open();
    const args = utility(8, 200, 'still running');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    await away(world, tab, 5);
    await eventually(async () => assert.match(await tab.status.textContent(), /^Recovered \d+ missed notifications$/));
    assert.equal((await server.metrics()).belay_calls_running, 1, 'the result is still to come');
    await call.cancel.waitFor();
    await call.checkWhole(args);
    const missed = await call.recovered();
    assert.ok(missed.length >= 5);
    const all = expectedNotes(args);
    const first = all.indexOf(missed[0]);
    assert.deepEqual(missed, all.slice(first, first + missed.length), 'what was missed is without a gap');
    await tab.said(['Reconnecting…', recovered(missed.length)]);
    await checkOneSession(server, tab);
}

async function doubleRefresh(world) {
    const { open, server } = world;
    const tab = await open();
    const args = utility(10, 200, 'double');
    const call = await tab.call(notifications, args);
    await call.reaches(2);
    await away(world, tab, 3);
    await call.reaches(9);
    await away(world, tab, 3);
    await call.checkWhole(args);
    await checkOneSession(server, tab);
}

/** Reloads faster than a page can connect. */
async function manyRefreshes({ open, server }) {
    const tab = await open();
    const args = utility(6, 100, 'nervous');
    const call = await tab.call(notifications, args);
    await call.reaches(1);
    // A document that is on its way out cannot be asked; the next one is.
    for (let count = 0; count < 4; ++count)
        await tab.page.evaluate(() => location.reload()).catch(() => {});
    await tab.said(['Connected', 'Reconnecting…']);
    await call.checkWhole(args);
    await checkOneSession(server, tab);
}

/** On a busy machine the page that goes keeps its lock for a while; that is no other tab. */
async function slowLocks({ open, server, context }) {
    const tab = await open();
    const args = utility(12, 200, 'slow locks');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    await context.addInitScript(() => {
        const { request } = LockManager.prototype;
        LockManager.prototype.request = function (name, ...rest) {
            const callback = rest.pop();
            const later = (lock) => new Promise((resolve) => setTimeout(() => resolve(callback(lock)), 5000));
            return request.call(this, name, ...rest, later);
        };
    });
    await tab.page.reload();
    await call.checkWhole(args);
    await checkOneSession(server, tab);
}

async function several(world) {
    const { open, server } = world;
    const tab = await open();
    const short = utility(4, 200, 'short one');
    const long = utility(8, 200, 'long one');
    const first = await tab.call(notifications, short);
    const second = await tab.call(notifications, long);
    const steps = await tab.call('longRunningOperation', { duration: 6, steps: 8 });
    await Promise.all([first.reaches(2), second.reaches(2)]);
    await eventually(async () => assert.ok(Number(await steps.bar.getAttribute('aria-valuenow')) >= 1));
    await away(world, tab, 6);
    await Promise.all([first.checkWhole(short), second.checkWhole(long), steps.ended()]);
    assert.match(await steps.resultText(), /Long running operation completed\. Duration: 6 seconds, Steps: 8\./);
    await steps.checkOnce();
    assert.equal(await steps.bar.getAttribute('aria-valuenow'), '8');
    assert.equal(await steps.bar.getAttribute('aria-valuemax'), '8');
    assert.deepEqual(await steps.messages(), []);
    assert.equal(await tab.page.getByRole('article').count(), 3);
    assert.equal(await tab.results.count(), 3);
    // Each call has been resumed by its own cursor.
    const resumed = tab.requests.filter(({ method, cursor }) => method === 'GET' && cursor).map(({ cursor }) => cursor);
    assert.equal(new Set(resumed).size, resumed.length);
    assert.ok(resumed.length >= 3);
    await checkOneSession(server, tab, 3);
}

/** Also what has ended is still there after a reload, and is not asked for again. */
async function endedBefore({ open, server }) {
    const tab = await open();
    const args = utility(0.4, 100, 'long done');
    const call = await tab.call(notifications, args);
    await call.checkWhole(args);
    const image = await tab.call('getTinyImage');
    await image.ended();
    await tab.page.reload();
    await call.checkWhole(args);
    await image.result.getByRole('img').waitFor();
    await tab.says('Connected');
    await tab.page.reload();
    await call.checkWhole(args);
    assert.equal(await tab.page.getByRole('article').count(), 2);
    await checkOneSession(server, tab, (await server.metrics()).belay_calls_started_total);
}

async function cancelAfterwards({ open, server }) {
    const tab = await open();
    const args = utility(60, 200, 'cancel me');
    const call = await tab.call(notifications, args);
    await call.reaches(2);
    await tab.page.reload();
    await call.cancel.click();
    await call.ended();
    assert.match(await call.resultText(), /cancelled/i);
    await server.until((now) => now.belay_calls_running === 0);
    await call.checkOnce();
    const messages = await call.messages();
    assert.deepEqual(messages, expectedNotes(args).slice(0, messages.length), 'what it said until then');
    const told = tab.requests.filter(({ message }) => message?.method === 'notifications/cancelled');
    assert.equal(told.length, 1);
    const asked = tab.requests.find(({ message }) => message?.method === 'tools/call');
    assert.deepEqual([told[0].status, told[0].message.params.requestId], [202, asked.message.id]);
    // It stays cancelled.
    await tab.page.reload();
    await call.ended();
    assert.match(await call.resultText(), /cancelled/i);
    await call.checkOnce();
    await checkOneSession(server, tab);
}

/** A page that comes back to its session says so, and shows what it showed. */
async function reconnected({ open, server }) {
    const tab = await open();
    await tab.select('echo');
    await tab.fill({ message: 'typed before' });
    for (let count = 0; count < 2; ++count) {
        const since = tab.statuses.length;
        await tab.page.reload();
        await tab.said(['Reconnecting…', 'Reconnected', 'Connected'], since);
        assert.deepEqual(tab.statuses.slice(since), ['Reconnecting…', 'Reconnected', 'Connected'], 'and nothing else');
        await tab.page.getByRole('region', { name: 'echo', exact: true }).waitFor();
        assert.equal(await tab.button('echo').getAttribute('aria-current'), 'true', 'the tool is still selected');
        assert.equal(await tab.form.getByLabel('message', { exact: true }).inputValue(), 'typed before');
    }
    await checkOneSession(server, tab, 0);
    // A new session is not one that was there before.
    const other = await open();
    assert.ok(!other.statuses.includes('Reconnected'));
}

scenarios('refresh', [
    ['reload mid-call (AS-01)', {}, midCall],
    ['result during the gap (AS-02)', {}, duringTheGap],
    ['result after reconnect (AS-03)', quiet, afterReconnect],
    ['double refresh (AS-04)', {}, doubleRefresh],
    ['reloads in a row', {}, manyRefreshes],
    ['a browser that is slow to hand over its locks', {}, slowLocks],
    ['several calls in flight (AS-08)', {}, several],
    ['what has ended stays', {}, endedBefore],
    ['cancel after a reload (AS-12)', {}, cancelAfterwards],
    ['the session and the selected tool are there again', quiet, reconnected],
], wholeBrowser);
