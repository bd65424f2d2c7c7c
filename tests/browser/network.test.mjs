// The network goes away under a page that stays.
import assert from 'node:assert/strict';
import { expectedNotes, notifications, utility } from '../clients/lib/expect.mjs';
import { Proxy } from '../clients/lib/proxy.mjs';
import { eventually } from './lib/eventually.mjs';
import { broken, recovered, scenarios } from './lib/scenario.mjs';

/** Waits until the page knows that it is cut off; from then on it has what it has. */
async function cutOff({ context }, tab) {
    await context.setOffline(true);
    await tab.says('Reconnecting…');
}

/** A page that does not know whether its call arrived sends it again, with its key. */
async function ranOnce(server) {
    const { belay_calls_started_total: started, belay_calls_repeated_total: repeated } = await server.metrics();
    assert.equal(started - repeated, 1);
}

/** The counter says how many were sent while nobody listened, and the result is in its place. */
async function counter(world) {
    const { open, context, server } = world;
    const tab = await open();
    const args = utility(3, 300, 'counted');
    const call = await tab.call(notifications, args);
    await call.reaches(6);
    await cutOff(world, tab);
    const seen = await call.messages();
    await server.until((now) => now.belay_calls_running === 0);
    assert.deepEqual(await call.messages(), seen, 'nothing arrives without a network');
    assert.equal(await tab.results.count(), 0);
    const all = expectedNotes(args);
    assert.deepEqual(seen, all.slice(0, seen.length));
    const since = tab.statuses.lastIndexOf('Reconnecting…');
    await context.setOffline(false);
    await tab.said(['Reconnecting…', recovered(all.length - seen.length), 'Connected'], since);
    await call.checkWhole(args);
    assert.deepEqual(await call.recovered(), all.slice(seen.length));
    assert.deepEqual(tab.statuses.slice(since).filter((text) => text.startsWith('Recovered')),
        [recovered(all.length - seen.length)], 'it is counted once');
    assert.equal(tab.sessions.length, 1);
}

/** Results of other kinds come back too. */
async function resultsInTheGap(world) {
    const { open, context, server } = world;
    const tab = await open();
    const steps = await tab.call('longRunningOperation', { duration: 2, steps: 4 });
    await eventually(async () => assert.ok(Number(await steps.bar.getAttribute('aria-valuenow')) >= 1));
    await cutOff(world, tab);
    await server.until((now) => now.belay_calls_running === 0);
    await context.setOffline(false);
    await steps.ended();
    assert.match(await steps.resultText(), /Long running operation completed\. Duration: 2 seconds, Steps: 4\./);
    assert.equal(await steps.bar.getAttribute('aria-valuenow'), '4');
    await steps.checkOnce();
}

async function offlineTwice(world) {
    const { open, context, server } = world;
    const tab = await open();
    const args = utility(8, 200, 'on and off');
    const call = await tab.call(notifications, args);
    for (const count of [2, 12]) {
        await call.reaches(count);
        await cutOff(world, tab);
        const { belay_events_appended_total: before } = await server.metrics();
        await server.until((now) => now.belay_events_appended_total >= before + 3);
        await context.setOffline(false);
        await eventually(async () =>
            assert.match(await tab.status.textContent(), /^Recovered \d+ missed notifications$/));
    }
    await call.checkWhole(args);
    await ranOnce(server);
    assert.equal(tab.sessions.length, 1);
}

/** A call that is made without a network waits for it, and runs once. */
async function calledOffline(world) {
    const { open, context, server } = world;
    const tab = await open();
    await tab.select(notifications);
    await cutOff(world, tab);
    const args = utility(0.4, 100, 'made offline');
    const call = await tab.call(notifications, args);
    await call.article.waitFor();
    assert.equal(await tab.results.count(), 0);
    await context.setOffline(false);
    await call.checkWhole(args);
    await ranOnce(server);
}

async function reloadAfterOffline(world) {
    const { open, context, server } = world;
    const tab = await open();
    const args = utility(2, 200, 'both');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    await cutOff(world, tab);
    const seen = await call.messages();
    await server.until((now) => now.belay_calls_running === 0);
    await context.setOffline(false);
    await tab.page.reload();
    await call.checkWhole(args);
    const all = expectedNotes(args);
    assert.deepEqual((await call.messages()).slice(0, seen.length), seen);
    assert.deepEqual(await call.recovered(), all.slice(seen.length));
}

/** More was sent than the server keeps: the page says how much is missing, and where. */
async function trimmed(world) {
    const { open, context, server } = world;
    const tab = await open();
    const args = utility(3, 100, 'trimmed');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    await cutOff(world, tab);
    const seen = await call.messages();
    await server.until((now) => now.belay_calls_running === 0);
    await context.setOffline(false);
    await call.ended();
    await call.checkOnce();
    const all = expectedNotes(args);
    const lines = await call.messages();
    const told = lines.findIndex((line) => /missed/.test(line));
    assert.equal(told, seen.length, 'it is told where it was');
    const rest = lines.slice(told + 1);
    assert.ok(rest.length > 0);
    assert.deepEqual([lines.slice(0, told), rest], [seen, all.slice(-rest.length)]);
    // Progress is counted with the messages.
    const [, missed] = /\bmissed\W+(\d+)/.exec(lines[told]);
    assert.ok(Number(missed) >= all.length - seen.length - rest.length, lines[told]);
}

async function through({ server, onClose }) {
    const proxy = await Proxy.start(server.url);
    onClose(() => proxy.close());
    return proxy;
}

async function resets(world) {
    const { open, server } = world;
    const proxy = await through(world);
    const tab = await open({ base: proxy.url });
    const args = utility(6, 100, 'reset');
    const call = await tab.call(notifications, args);
    for (const count of [3, 20, 35]) {
        await call.reaches(count);
        proxy.destroyAll();
    }
    await call.checkWhole(args);
    await tab.said(['Connected', 'Reconnecting…', 'Connected']);
    assert.ok((await call.recovered()).length > 0, 'the page was away for as long as it waits');
    await ranOnce(server);
    assert.equal(tab.sessions.length, 1);
    assert.ok(tab.statuses.some((text) => /^Recovered \d+ missed notifications?$/.test(text)));
}

/** Every connection with a call's events breaks after some bytes, also inside an event. */
async function cutsInside(world) {
    const { open, server, onClose } = world;
    const budgets = [40, 900, 333, 1500, 1];
    const proxy = await Proxy.start(server.url, () => budgets.shift() ?? Infinity);
    onClose(() => proxy.close());
    const tab = await open({ base: proxy.url });
    const args = utility(6, 100, 'cut inside');
    const call = await tab.call(notifications, args);
    await call.checkWhole(args);
    assert.equal(proxy.cuts, 5);
    // A browser may drop what came before a break; then the page asks again, for the same call.
    const asked = tab.requests.filter(({ message }) => message?.method === 'tools/call')
        .map(({ message }) => message.id);
    assert.equal(new Set(asked).size, 1);
}

async function plug(world) {
    const { open, server } = world;
    const tab = await open();
    const args = utility(8, 200, 'pulled');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    const since = tab.statuses.length;
    await tab.button('Pull the plug').click();
    await tab.said(['Reconnecting…'], since);
    await eventually(async () => assert.match(await tab.status.textContent(), /^Recovered \d+ missed notifications$/));
    await call.checkWhole(args);
    const missed = await call.recovered();
    assert.ok(missed.length > 0);
    await tab.said(['Reconnecting…', recovered(missed.length), 'Connected'], since);
    await ranOnce(server);
    assert.equal(tab.sessions.length, 1);
}

/** Who does not want to wait for the next try need not. */
async function retryNow({ open, context, server }) {
    const tab = await open();
    const args = utility(2, 200, 'impatient');
    const call = await tab.call(notifications, args);
    await call.reaches(2);
    // Connections of a page that is offline are ended; the route is why it stays so when the browser is online again.
    const isEndpoint = ({ pathname }) => pathname === '/mcp';
    await context.route(isEndpoint, (route) => route.abort('connectionrefused'));
    await context.setOffline(true);
    await tab.says('Reconnecting…');
    await context.setOffline(false);
    const seen = await call.messages();
    await server.until((now) => now.belay_calls_running === 0);
    // After some failures the next try is far away.
    const tries = () => tab.requests.filter(({ cursor }) => cursor?.startsWith(tab.requests.at(-1).cursor)).length;
    await eventually(() => assert.ok(tries() >= 5));
    await context.unroute(isEndpoint);
    await tab.button('Retry now').click();
    const missed = expectedNotes(args).length - seen.length;
    await tab.said(['Reconnecting…', recovered(missed)]);
    await tab.button('Retry now').waitFor({ state: 'hidden' });
    await call.checkWhole(args);
}

const cut = { expected: [broken] };

scenarios('network', [
    ['the recovered counter (AS-11)', cut, counter],
    ['results in the gap (AS-02, AS-11)', cut, resultsInTheGap],
    ['offline twice in one call', cut, offlineTwice],
    ['a call made offline', cut, calledOffline],
    ['offline, then a reload', cut, reloadAfterOffline],
    ['more was missed than the server keeps (AS-39)', { ...cut, flags: ['--events-max-per-stream', '10'] }, trimmed],
    ['connections that are reset', cut, resets],
    ['connections that break inside an event', cut, cutsInside],
    ['pull the plug', cut, plug],
    ['retry now', cut, retryNow],
]);
