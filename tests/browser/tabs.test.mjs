// Several tabs of one browser.
import assert from 'node:assert/strict';
import { expectedNotes, notifications, utility } from '../clients/lib/expect.mjs';
import { eventually } from './lib/eventually.mjs';
import { refused, scenarios } from './lib/scenario.mjs';

async function twoTabs({ open, server }) {
    const [one, two] = [await open(), await open()];
    assert.deepEqual([one.sessions.length, two.sessions.length], [1, 1]);
    assert.notEqual(one.sessions[0], two.sessions[0]);
    const args = [utility(6, 200, 'first tab'), utility(6, 200, 'second tab')];
    const first = await one.call(notifications, args[0]);
    const second = await two.call(notifications, args[1]);
    await Promise.all([first.reaches(3), second.reaches(3)]);
    const before = { statuses: two.statuses.length, requests: two.requests.length };
    await one.page.reload();
    await one.said(['Connected', 'Reconnecting…']);
    await Promise.all([first.checkWhole(args[0]), second.checkWhole(args[1])]);
    assert.deepEqual(two.statuses.slice(before.statuses), [], 'the other tab noticed nothing');
    assert.deepEqual(two.requests.slice(before.requests).filter(({ method }) => method !== 'POST'), []);
    assert.deepEqual(await second.recovered(), []);
    assert.equal(await one.page.getByRole('article').count(), 1);
    assert.equal(await two.page.getByRole('article').count(), 1);
    assert.equal((await server.metrics()).belay_sessions, 2);
}

/**
 * A tab that is duplicated begins with a copy of the tab's storage; so does one that the page opens. It opens something
 * that is not the page yet, because a window's first document keeps what was there before it.
 */
async function duplicate(context, { page }) {
    // The browser wants an icon for it, which the page has under another name.
    await context.route('**/favicon.ico', (route) => route.fulfill({ status: 204 }));
    const [opened] = await Promise.all([
        context.waitForEvent('page'),
        page.evaluate(() => void window.open('/metrics')),
    ]);
    await opened.waitForLoadState();
    return opened;
}

async function duplicated({ open, adopt, context, server }) {
    const original = await open();
    const args = utility(8, 200, 'original');
    const call = await original.call(notifications, args);
    await call.reaches(3);
    const opened = await duplicate(context, original);
    const copy = adopt(opened, original.url);
    await copy.open();
    const kept = await opened.evaluate(() => window.storageAtStart);
    assert.ok(Object.values(kept).includes(original.sessions[0]), 'the copy began with the session of the original');
    assert.ok(Object.values(kept).some((value) => value.includes('original')), 'and with its call');
    await eventually(() => assert.ok(copy.sessions.length > 0));
    assert.ok(!copy.sessions.includes(original.sessions[0]), 'and used neither');
    assert.equal(await copy.page.getByRole('article').count(), 0, 'the call is in the original only');
    await call.checkWhole(args);
    assert.deepEqual(await call.recovered(), []);
    assert.deepEqual(original.statuses.filter((text) => text !== 'Connected').slice(-1), ['Connecting…']);
    const own = utility(0.4, 100, 'the copy');
    await (await copy.call(notifications, own)).checkWhole(own);
    // Each goes on with its own after a reload.
    await Promise.all([original.page.reload(), copy.page.reload()]);
    await call.checkWhole(args);
    await copy.find(notifications, 'the copy').checkWhole(own);
    await Promise.all([original.says('Connected'), copy.says('Connected')]);
    assert.deepEqual([original.sessions.length, copy.sessions.length], [1, 1]);
    assert.equal((await server.metrics()).belay_sessions, 2);
}

/** The original was closed: the copy is all there is, and goes on with its call. */
async function orphaned({ open, adopt, context, server }) {
    const original = await open();
    const args = utility(10, 200, 'inherited');
    const call = await original.call(notifications, args);
    await call.reaches(3);
    const opened = await duplicate(context, original);
    await original.page.close();
    const copy = adopt(opened, original.url);
    await copy.comeBack();
    await copy.find(notifications, 'inherited').checkWhole(args);
    assert.deepEqual(copy.sessions, original.sessions);
    assert.equal((await server.metrics()).belay_sessions, 1);
}

async function sameSession({ open, server }) {
    const path = '/?persistence=browser';
    const one = await open({ path });
    // Fast, so that messages arrive while the tabs change over.
    const args = utility(8, 40, 'shared');
    const first = await one.call(notifications, args);
    await first.reaches(20);
    const two = await open({ path });
    await one.says('Taken over by another tab');
    const shown = await first.messages();
    const requests = one.requests.length;
    const second = two.find(notifications, 'shared');
    await second.checkWhole(args);
    const missed = await second.recovered();
    assert.deepEqual(shown.filter((message) => missed.includes(message)), [], 'no message arrives in both');
    assert.deepEqual(one.sessions, two.sessions);
    assert.equal(await one.status.textContent(), 'Taken over by another tab');
    assert.equal(one.requests.length, requests, 'the first tab does not come back by itself');
    assert.equal(await one.results.filter({ hasText: 'notificationsSent' }).count(), 0);
    assert.deepEqual(await first.messages(), shown);
    assert.deepEqual(shown, expectedNotes(args).slice(0, shown.length));
    const { belay_sessions: sessions, belay_calls_started_total: started } = await server.metrics();
    assert.deepEqual({ sessions, started }, { sessions: 1, started: 1 });
}

/** The first tab comes back on request, and the call with it. */
async function takenBack({ open, server }) {
    const path = '/?persistence=browser';
    const one = await open({ path });
    const args = utility(12, 200, 'to and fro');
    await (await one.call(notifications, args)).reaches(3);
    const two = await open({ path });
    await one.says('Taken over by another tab');
    await two.find(notifications, 'to and fro').reaches(8);
    await one.button('Connect').click();
    await two.says('Taken over by another tab');
    await one.find(notifications, 'to and fro').checkWhole(args);
    assert.equal(await two.results.filter({ hasText: 'notificationsSent' }).count(), 0);
    assert.equal(one.sessions.length, 1, 'it is the same session');
    assert.deepEqual(one.sessions, two.sessions);
    const { belay_sessions: sessions, belay_calls_started_total: started } = await server.metrics();
    assert.deepEqual({ sessions, started }, { sessions: 1, started: 1 });
}

/** A tab that was closed is gone on with by the next one. */
async function closedAndOpened({ open, server }) {
    const path = '/?persistence=browser';
    const one = await open({ path });
    const args = utility(6, 200, 'next tab');
    const call = await one.call(notifications, args);
    await call.reaches(3);
    await one.page.close();
    const two = await open({ path });
    await two.find(notifications, 'next tab').checkWhole(args);
    assert.deepEqual(one.sessions, two.sessions);
    assert.equal((await server.metrics()).belay_calls_started_total, 1);
}

/** Somebody else fights for the page's standalone stream until the server has enough of it. */
async function storm({ open, server, onClose }) {
    const tab = await open();
    const [session] = tab.sessions;
    const leave = new AbortController();
    onClose(() => leave.abort());
    const listening = () => tab.requests.filter(({ method, status }) => method === 'GET' && status !== undefined);
    const headers = { accept: 'text/event-stream', 'mcp-session-id': session };
    const args = utility(14, 200, 'in the storm');
    const call = await tab.call(notifications, args);
    for (let count = 1; !listening().some(({ status }) => status === 409); ++count) {
        assert.ok(count <= 3, 'the fourth takeover is refused');
        const response = await fetch(server.url, { headers, signal: leave.signal });
        assert.equal(response.status, 200);
        await eventually(() => assert.ok(listening().length > count));
    }
    const refusal = listening().find(({ status }) => status === 409);
    const wait = Number(refusal.headers['retry-after']);
    assert.equal(wait, 10);
    assert.equal(await tab.status.textContent(), 'Connected');
    const next = await eventually(() => {
        const later = listening().filter(({ at }) => at > refusal.at);
        assert.ok(later.length > 0);
        return later[0];
    });
    assert.equal(next.status, 200);
    assert.ok(next.at - refusal.answeredAt > (wait - 0.5) * 1000, 'not before it was told to');
    await call.checkWhole(args);
    assert.deepEqual(await call.recovered(), [], 'the call was not touched by it');
    assert.deepEqual(tab.sessions, [session]);
}

scenarios('tabs', [
    ['two tabs (AS-13)', {}, twoTabs],
    ['duplicated tab (AS-14)', {}, duplicated],
    ['a duplicate whose original is closed', {}, orphaned],
    ['one session in two tabs (AS-15)', {}, sameSession],
    ['one session, taken back by the first tab', {}, takenBack],
    ['one session, the second tab after the first', {}, closedAndOpened],
    ['a fight for the standalone stream (AS-16)', { expected: [refused(409)] }, storm],
]);
