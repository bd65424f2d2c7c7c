// The storage of the page: too small for what it has to keep, or full of what the page has not put there.
import assert from 'node:assert/strict';
import { notifications, utility } from '../clients/lib/expect.mjs';
import { eventually } from './lib/eventually.mjs';
import { scenarios } from './lib/scenario.mjs';

const unkept = /not kept over a reload/;

const echo = async (tab, message) => {
    const call = await tab.call('echo', { message }, `Echo: ${message.slice(0, 20)}`);
    await call.ended();
    return call;
};
const cards = (tab) => tab.page.getByRole('article');

/** Others have filled it, but for so many characters. */
const fillUp = (tab, left) => tab.page.evaluate((left) => {
    let text = '';
    for (let size = 2 ** 23; size >= 64; size /= 2)
        try {
            sessionStorage.setItem('other', text + 'x'.repeat(size));
            text += 'x'.repeat(size);
        } catch {
            // so much does not fit
        }
    sessionStorage.setItem('other', text.slice(left));
}, left);

/** A large result costs neither the calls before it nor itself. */
async function tooLarge({ open, server }) {
    const tab = await open();
    for (const message of ['one', 'two', 'three'])
        await echo(tab, message);
    await fillUp(tab, 200_000);
    await echo(tab, 'x'.repeat(300_000));
    assert.equal(await cards(tab).count(), 4);
    assert.match(await cards(tab).first().innerText(), unkept);
    for (const message of ['one', 'two', 'three']) {
        const card = cards(tab).filter({ hasText: `Echo: ${message}` });
        assert.doesNotMatch(await card.innerText(), unkept);
    }
    await tab.page.reload();
    await tab.says('Connected');
    for (const message of ['one', 'two', 'three'])
        assert.match(await cards(tab).filter({ hasText: `Echo: ${message}` }).innerText(), /Done/);
    assert.match(await cards(tab).first().innerText(), /The result of 293\.\d KiB was too large to keep/);
    assert.equal((await server.metrics()).belay_sessions, 1);
    await echo(tab, 'four');
    assert.equal(await cards(tab).count(), 5);
}

/** It is full: the oldest calls go, and the page still has them. */
async function full({ open, server }) {
    const tab = await open();
    for (const message of ['one', 'two'])
        await echo(tab, message + '-'.repeat(20_000));
    await fillUp(tab, 0);
    await echo(tab, 'three' + '-'.repeat(10_000));
    assert.equal(await cards(tab).count(), 3);
    assert.match(await cards(tab).filter({ hasText: 'Echo: one' }).innerText(), unkept, 'the oldest');
    assert.doesNotMatch(await cards(tab).filter({ hasText: 'Echo: three' }).innerText(), unkept);
    await tab.page.reload();
    await tab.says('Connected');
    assert.equal(await cards(tab).filter({ hasText: 'Echo: three' }).count(), 1);
    assert.equal(await cards(tab).filter({ hasText: 'Echo: one' }).count(), 0);
    assert.equal((await server.metrics()).belay_sessions, 1);
}

/** A call that is too large to keep whole is gone on with all the same. */
async function tooLargeRunning({ open, server }) {
    const tab = await open();
    await fillUp(tab, 10_000);
    await tab.call(notifications, utility(6, 200, 'y'.repeat(20_000)));
    const call = tab.find(notifications);
    await eventually(async () => assert.ok(Number(await call.bar.getAttribute('aria-valuenow')) >= 3));
    assert.match(await call.article.innerText(), unkept);
    await tab.page.reload();
    await call.ended();
    assert.match(await call.article.innerText(), /Done/);
    await call.checkOnce();
    const { belay_sessions: sessions, belay_calls_started_total: started } = await server.metrics();
    assert.deepEqual({ sessions, started }, { sessions: 1, started: 1 });
}

const odd = ['5', '{"items":[{"name":5}],"__proto__":{"a":1}}', '{broken'];

/** Whatever is in the storage, the page is there, works, and tells the browser's console what it dropped. */
async function oddValues({ open, context }) {
    const tab = await open();
    const told = [];
    context.on('console', (message) => message.type() === 'warning' && told.push(message.text()));
    await tab.button('Resources').click();
    await tab.button('Tools').click();
    const args = utility(60, 50, 'long');
    for (const value of odd) {
        const call = await tab.call(notifications, args);
        await call.reaches(2);
        await tab.page.evaluate((text) => {
            // The page writes when it is left; what is put there now is put there after that.
            window.addEventListener('pagehide', () => {
                for (const area of [sessionStorage, localStorage])
                    for (const key of Object.keys(area))
                        area.setItem(key, text);
            });
        }, value);
        told.length = 0;
        await tab.page.reload();
        await tab.says('Connected');
        assert.ok(told.some((text) => /^Dropped what was stored as mcp_session:/.test(text)), `${value}: ${told}`);
        assert.ok(told.some((text) => /^Dropped what was stored as belay_console_/.test(text)));
        assert.equal(await cards(tab).count(), 0);
    }
    await echo(tab, 'after');
    await tab.page.reload();
    await tab.says('Connected');
    assert.equal(await cards(tab).count(), 1, 'and it keeps what it does from now on');
}

scenarios('storage', [
    ['a result that is too large for it', {}, tooLarge],
    ['full', {}, full],
    ['a running call that is too large for it', {}, tooLargeRunning],
    ['values of another shape', {}, oddValues],
]);
