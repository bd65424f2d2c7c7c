// The session ends: by itself, with its server, or because the user wants it.
import assert from 'node:assert/strict';
import { expectedNotes, notifications, utility } from '../clients/lib/expect.mjs';
import { Server } from '../clients/lib/server.mjs';
import { eventually } from './lib/eventually.mjs';
import { broken, refused, scenarios } from './lib/scenario.mjs';

const expired = 'Session expired, reconnecting…';
const short = ['--session-idle-timeout', '5s', '--reaper-interval', '100ms'];

/** The tab has a new session, a page that works, and has asked nobody to do anything. */
async function checkFresh(tab, old, since) {
    await tab.said([expired, 'Connected'], since);
    await eventually(() => assert.equal(tab.sessions.length, 2));
    assert.equal(tab.sessions[0], old);
    const gone = tab.requests.filter(({ status }) => status === 404);
    assert.ok(gone.length > 0);
    assert.ok(gone.every(({ session }) => session === old));
    const begun = tab.requests.filter(({ message }) => message?.method === 'initialize');
    assert.deepEqual(begun.map(({ session }) => session), [undefined, undefined]);
    const last = tab.requests.findLastIndex(({ session }) => session === old);
    assert.ok(last < tab.requests.indexOf(begun[1]), 'the old session is not used any more');
    const args = utility(0.4, 100, 'after the end');
    await (await tab.call(notifications, args)).checkWhole(args);
}

async function expiredAway({ open, server }) {
    const tab = await open();
    const args = utility(0.4, 100, 'before the end');
    const call = await tab.call(notifications, args);
    await call.checkWhole(args);
    const [old] = tab.sessions;
    const since = tab.statuses.length;
    await tab.leave();
    await server.until((now) => now.belay_sessions === 0);
    await tab.comeBack();
    await checkFresh(tab, old, since);
    await call.checkWhole(args);
    assert.equal((await server.metrics()).belay_sessions, 1);
    // And the new one is a session like any other.
    await tab.page.reload();
    await tab.says('Connected');
    assert.equal(tab.sessions.length, 2);
}

async function expiredOffline({ open, server, context }) {
    const tab = await open();
    const [old] = tab.sessions;
    await context.setOffline(true);
    await tab.says('Reconnecting…');
    const since = tab.statuses.length;
    await server.until((now) => now.belay_sessions === 0);
    await context.setOffline(false);
    await checkFresh(tab, old, since);
}

/** Another server comes in the place of the first, which it does not know. */
async function restart(world, flags = []) {
    const { port } = world.server.url;
    await world.server.stop();
    world.server = await Server.start([...flags, '--listen', `127.0.0.1:${port}`]);
}

async function checkLost(call, args) {
    await call.ended();
    const text = await call.resultText();
    assert.match(text, /lost/i);
    assert.match(text, /no longer knows the session/, 'with the reason');
    await call.checkOnce();
    const messages = await call.messages();
    assert.deepEqual(messages, expectedNotes(args).slice(0, messages.length));
}

/** The page does not see the server go. */
async function restartUnseen(world) {
    const { open, context } = world;
    const tab = await open();
    const done = utility(0.4, 100, 'done before');
    await (await tab.call(notifications, done)).checkWhole(done);
    const args = utility(60, 200, 'cut short');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    const [old] = tab.sessions;
    await context.setOffline(true);
    await tab.says('Reconnecting…');
    await restart(world);
    const since = tab.statuses.length;
    await context.setOffline(false);
    await checkFresh(tab, old, since);
    await checkLost(call, args);
    await tab.find(notifications, 'done before').checkWhole(done);
    assert.equal((await world.server.metrics()).belay_sessions, 1);
    // It is lost for good, and said so.
    await tab.page.reload();
    await checkLost(call, args);
}

/** The same, and the page is reloaded meanwhile. */
async function restartAway(world) {
    const { open } = world;
    const tab = await open();
    const args = utility(60, 200, 'cut short');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    const [old] = tab.sessions;
    await tab.leave();
    await restart(world);
    const since = tab.statuses.length;
    await tab.comeBack();
    await checkFresh(tab, old, since);
    await checkLost(call, args);
}

/** The page is connected when the server is stopped: the call gets its answer, the page waits for the next server. */
async function restartSeen(world) {
    const { open } = world;
    const tab = await open();
    const args = utility(60, 200, 'stopped');
    const call = await tab.call(notifications, args);
    await call.reaches(3);
    const [old] = tab.sessions;
    const since = tab.statuses.length;
    await restart(world);
    await checkFresh(tab, old, since);
    await call.ended();
    await call.checkOnce();
    assert.match(await call.resultText(), /stop|shut|restart|lost/i);
    const messages = await call.messages();
    assert.deepEqual(messages, expectedNotes(args).slice(0, messages.length));
}

/** The page tries again for as long as it takes. */
async function serverLater(world) {
    const { open, server } = world;
    const tab = await open();
    await world.server.stop();
    await tab.says('Reconnecting…');
    const failed = () => tab.requests.filter(({ status }) => status === undefined).length;
    const before = failed();
    await tab.button('Retry now').click();
    await eventually(() => assert.ok(failed() > before));
    world.server = await Server.start(['--listen', `127.0.0.1:${server.url.port}`]);
    await tab.said([expired, 'Connected']);
}

async function disconnect({ open, server }) {
    const tab = await open();
    const done = utility(0.4, 100, 'done');
    await (await tab.call(notifications, done)).checkWhole(done);
    const running = await tab.call(notifications, utility(60, 200, 'running'));
    await running.reaches(2);
    const [session] = tab.sessions;
    await tab.button('Disconnect').click();
    await tab.says('Disconnected');
    await tab.button('Connect').waitFor();
    const ended = tab.requests.filter(({ method }) => method === 'DELETE');
    assert.deepEqual(ended.map((request) => [request.session, request.status]), [[session, 200]]);
    await server.until((now) => now.belay_sessions === 0 && now.belay_calls_running === 0);

    const stored = () => tab.page.evaluate(
        () => [sessionStorage, localStorage].flatMap((area) => Object.entries(area)));
    const checkForgotten = async () => {
        for (const [key, value] of await stored()) {
            assert.ok(!value.includes(session), `${key} has the session`);
            assert.ok(!value.includes('notificationsSent'), `${key} has a result`);
            assert.ok(!/^mcp_(call|session|last_event)/.test(key), `${key} is of the session`);
        }
    };
    await checkForgotten();
    assert.ok((await stored()).some(([, value]) => value === server.url.href), 'the address is kept');

    const requests = tab.requests.length;
    await tab.page.reload();
    await tab.says('Disconnected');
    assert.equal(await tab.page.getByRole('article').count(), 0);
    await checkForgotten();
    // Whatever the page asks of its server by itself, it has asked before it says anything a second time.
    await tab.page.reload();
    await tab.says('Disconnected');
    assert.equal(tab.requests.length, requests, 'it does not come back by itself');

    await tab.button('Connect').click();
    await tab.says('Connected');
    assert.equal(tab.sessions.length, 2);
    const args = utility(0.4, 100, 'connected again');
    await (await tab.call(notifications, args)).checkWhole(args);
    await tab.page.reload();
    await tab.says('Connected');
    assert.equal(tab.sessions.length, 2);
}

/** Who leaves while the server is away is not kept waiting. */
async function disconnectOffline({ open, context }) {
    const tab = await open();
    await context.setOffline(true);
    await tab.says('Reconnecting…');
    await tab.button('Disconnect').click();
    await tab.says('Disconnected');
    await context.setOffline(false);
    await tab.button('Connect').click();
    await tab.says('Connected');
    assert.equal(tab.sessions.length, 2);
}

async function unload({ open, server }) {
    const tab = await open();
    const stored = () => tab.page.evaluate(() => sessionStorage.getItem('mcp_session_id'));
    assert.equal(await stored(), tab.sessions[0]);
    await tab.leave();
    await tab.comeBack();
    await tab.says('Connected');
    assert.equal(await stored(), tab.sessions[0]);
    await tab.page.close();
    // Its last words would have reached the server before the next page's first.
    await open();
    assert.equal((await server.metrics()).belay_sessions, 2);
    assert.ok(tab.requests.every(({ method }) => method !== 'DELETE'));
}

const lost = [broken, refused(404)];

scenarios('session', [
    ['expired while the page was away (AS-17)', { flags: short, expected: lost }, expiredAway],
    ['expired while there was no network (AS-17)', { flags: short, expected: lost }, expiredOffline],
    ['server restart that the page does not see (AS-19)', { expected: lost }, restartUnseen],
    ['server restart while the page is away (AS-19)', { expected: lost }, restartAway],
    ['server restart under the page (AS-19)', { expected: lost }, restartSeen],
    ['a server that is back after a while', { expected: lost }, serverLater],
    ['disconnect, then reload (AS-27)', {}, disconnect],
    ['disconnect without a network', { expected: lost }, disconnectOffline],
    ['unload ends nothing (AS-27)', {}, unload],
]);
